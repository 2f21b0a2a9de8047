"""Arrow schemas as pyiceberg builds them from Iceberg schemas."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

FIELD_ID = b"PARQUET:field_id"


def materialized(schema: Schema, large_fields: Collection[int] = ()) -> pa.Schema:
    """The schema of a table that pyiceberg reads from files.

    Field ids are gone from the metadata. Strings, binaries and lists have
    32-bit offsets, except those of large_fields, by field id.
    """
    with_ids = schema_to_pyarrow(schema)
    return pa.schema([_field(field, large_fields) for field in with_ids])


def _field(field: pa.Field, large_fields: Collection[int]) -> pa.Field:
    metadata = dict(field.metadata or {})
    field_id = metadata.pop(FIELD_ID, None)
    large = field_id is not None and int(field_id) in large_fields
    return pa.field(field.name, _type(field.type, large, large_fields), field.nullable, metadata or None)


def _type(of: pa.DataType, large: bool, large_fields: Collection[int]) -> pa.DataType:
    if pa.types.is_struct(of):
        return pa.struct([_field(field, large_fields) for field in of])
    if pa.types.is_map(of):
        return pa.map_(_field(of.key_field, large_fields), _field(of.item_field, large_fields))
    if pa.types.is_large_list(of):
        return (pa.large_list if large else pa.list_)(_field(of.value_field, large_fields))
    if large:
        return of
    if pa.types.is_large_string(of):
        return pa.string()
    if pa.types.is_large_binary(of):
        return pa.binary()
    return of


def with_type(array: pa.Array, of: pa.DataType) -> pa.Array:
    """The array in a type that differs in the width of offsets and in metadata.

    Unlike cast(), which refuses a required field of a struct that is null.
    """
    if pa.types.is_struct(of):
        fields = [with_type(array.field(i), field.type) for i, field in enumerate(of)]
        return pa.StructArray.from_arrays(fields, fields=list(of), mask=array.is_null())
    if pa.types.is_map(of):
        keys, items = with_type(array.keys, of.key_type), with_type(array.items, of.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=of, mask=array.is_null())
    if pa.types.is_large_list(of):
        offsets = array.offsets.cast(pa.int64())
        return pa.LargeListArray.from_arrays(
            offsets, with_type(array.values, of.value_type), type=of, mask=array.is_null()
        )
    if pa.types.is_list(of):
        return pa.ListArray.from_arrays(
            array.offsets, with_type(array.values, of.value_type), type=of, mask=array.is_null()
        )
    return array if array.type == of else array.cast(of)
