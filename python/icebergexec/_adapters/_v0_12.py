"""Hooks for pyiceberg 0.12.x.

    place                             becomes
    DataScan.to_arrow                 a scan in the engine, as a table      (so to_pandas, to_polars, to_duckdb, to_ray)
    DataScan.to_arrow_batch_reader    a scan in the engine, streaming
    DataScan.count                    a scan in the engine that only counts

What comes back equals what pyiceberg 0.12.x returns: its schema with names,
types, nullability and metadata, its row order, and the rows that its row filter
keeps. Scans that the engine cannot reach (a storage or file format it does not
read, planning by a REST server) stay pyiceberg's own.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan
from pyiceberg.types import NestedField, StructType

from icebergexec import _config, _expressions
from icebergexec._adapters._hooks import Hook
from icebergexec._arrow import materialized, with_type
from icebergexec._engine import shared
from icebergexec._reader import closing_reader
from icebergexec._scan import metadata_json
from icebergexec._sizes import format_size
from icebergexec._stream import Stream
from icebergexec.errors import EngineError, UnsupportedError

logger = logging.getLogger("icebergexec")


def hooks() -> tuple[Hook, ...]:
    return (
        Hook(DataScan, "to_arrow", to_arrow),
        Hook(DataScan, "to_arrow_batch_reader", to_arrow_batch_reader),
        Hook(DataScan, "count", count),
    )


def to_arrow(original: Callable[..., pa.Table], scan: DataScan, dictionary_columns: tuple[str, ...] = ()) -> pa.Table:
    if not _in_reach(scan):
        return original(scan, dictionary_columns)
    projection = scan.projection()
    try:
        with _open(scan, projection, large_types=False) as stream:
            batches = list(_batches(stream, materialized(projection)))
            large_fields = stream.stats().get("large_fields")
    except UnsupportedError as cause:
        return _instead(cause, original, scan, dictionary_columns)
    if not batches:
        # pyiceberg has no batch then from which to take the types.
        return schema_to_pyarrow(projection, include_field_ids=False).empty_table()
    fields: dict[str, pa.Field] = {}
    if large_fields:
        # pyiceberg takes the types from the files: 64-bit offsets where one of them says so, or lacks the field.
        fields = {field.name: field for field in materialized(projection, large_fields)}
    fields.update(_dictionary_fields(projection, dictionary_columns))
    table = pa.Table.from_batches([_with_fields(batch, fields) for batch in batches])
    threshold = _config.current()["materialization-warning-threshold"]
    if table.nbytes > threshold:
        logger.warning(
            "to_arrow() of %s holds %s in memory, more than materialization-warning-threshold (%s); "
            "to_arrow_batch_reader() reads the same rows batch by batch",
            name_of(scan),
            format_size(table.nbytes),
            format_size(threshold),
        )
    return table


def to_arrow_batch_reader(
    original: Callable[..., pa.RecordBatchReader], scan: DataScan, dictionary_columns: tuple[str, ...] = ()
) -> pa.RecordBatchReader:
    if not _in_reach(scan):
        return original(scan, dictionary_columns)
    projection = scan.projection()
    try:
        stream = _open(scan, projection, large_types=True)
    except UnsupportedError as cause:
        return _instead(cause, original, scan, dictionary_columns)
    schema = schema_to_pyarrow(projection)
    batches = _batches(stream, schema)
    if dictionary_columns and (first := next(batches, None)) is not None:
        # As in pyiceberg, where these columns take their fields from the first batch, if there is one.
        fields = _dictionary_fields(projection, dictionary_columns)
        schema = pa.schema([fields.get(field.name, field) for field in schema], metadata=schema.metadata)
        batches = (_with_fields(batch, fields) for batch in itertools.chain((first,), batches))
    return closing_reader(schema, batches, stream.close)


def count(original: Callable[..., int], scan: DataScan) -> int:
    if not _in_reach(scan):
        return original(scan)
    try:
        with _open(scan, Schema(), large_types=False) as stream:
            return stream._count()
    except UnsupportedError as cause:
        return int(_instead(cause, original, scan))


def _instead(cause: UnsupportedError, original: Callable[..., Any], scan: DataScan, *arguments: Any) -> Any:
    """What pyiceberg makes of a scan that the engine does not support; the engine's reason if it fails, too."""
    logger.info("scan of %s is left to pyiceberg: %s", name_of(scan), cause)
    try:
        return original(scan, *arguments)
    except (ValueError, NotImplementedError) as failure:
        raise cause from failure


# -- requests


def _open(scan: DataScan, projection: Schema, large_types: bool) -> Stream:
    """Start the scan in the engine."""
    metadata = scan.table_metadata
    snapshot = scan.snapshot()
    row_filter = scan.row_filter
    return shared(_config.current())._scan(
        {
            "metadata": metadata_json(metadata),
            "metadata_location": name_of(scan),
            # Without a snapshot id the current schema counts, with one the snapshot's, as in scan.projection().
            "snapshot_id": snapshot.snapshot_id if snapshot is not None and scan.snapshot_id is not None else None,
            "columns": _columns(projection, scan),
            # pyiceberg binds filters to the current schema, also those of an earlier snapshot.
            "filter": None
            if isinstance(row_filter, AlwaysTrue)
            else _expressions.to_wire(row_filter, metadata.schema(), scan.case_sensitive),
            "filter_mode": "pyiceberg-scan",
            "limit": scan.limit,
            "large_types": large_types,
        }
    )


def _columns(projection: Schema, scan: DataScan) -> list[str] | None:
    """The columns to ask for: whole ones by name, parts of structs by dotted names."""
    if projection.fields and "*" in scan.selected_fields:
        return None
    whole = {
        field.field_id: field
        for schema in (*scan.table_metadata.schemas, scan.table_metadata.schema())
        for field in _all_fields(schema)
    }
    names: list[str] = []
    for field in projection.fields:
        names.extend(_dotted(field, whole, ""))
    return names


def _all_fields(schema: Schema) -> Iterator[NestedField]:
    for field_id in schema.field_ids:
        yield schema.find_field(field_id)


def _dotted(field: NestedField, whole: dict[int, NestedField], prefix: str) -> list[str]:
    name = prefix + field.name
    if not isinstance(field.field_type, StructType) or field.field_type == whole[field.field_id].field_type:
        return [name]
    return [part for inner in field.field_type.fields for part in _dotted(inner, whole, name + ".")]


# -- which scans the engine can do

_LOCAL_SCHEMES = ("", "file")


def _in_reach(scan: DataScan) -> bool:
    """Whether the engine can read what the scan names."""
    reason = reason_for_pyiceberg(scan)
    if reason is not None:
        logger.info("scan of %s is left to pyiceberg: %s", name_of(scan), reason)
    return reason is None


def reason_for_pyiceberg(scan: DataScan) -> str | None:
    """Why a scan stays pyiceberg's own; None if the engine takes it."""
    if scan._should_use_server_side_planning():
        return "its catalog plans scans on the server"
    if not _opens_like_us(scan.io):
        return f"its files are opened by {type(scan.io).__module__}.{type(scan.io).__name__}"
    location = scan.table_metadata.location
    scheme = urlsplit(location).scheme
    if scheme not in _LOCAL_SCHEMES and not _is_moved(location):
        return f"its files have the scheme {scheme}"
    return None


def _opens_like_us(io: FileIO) -> bool:
    """Whether a local location means the same file to pyiceberg's storage and to the engine."""
    return type(io).__module__ in ("pyiceberg.io.pyarrow", "pyiceberg.io.fsspec")


def _is_moved(location: str) -> bool:
    prefixes: dict[str, str] = _config.current()["path-prefixes"]
    return any(location.startswith(prefix) for prefix in prefixes)


def name_of(scan: DataScan) -> str:
    """What to call the table in messages."""
    match scan.table_identifier:
        case ("static-table", location):
            return location
        case None | ():
            return scan.table_metadata.location
        case identifier:
            return ".".join(identifier)


# -- batches


def _batches(stream: Stream, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The stream's batches under pyiceberg's schema, which differs from the engine's in metadata only."""
    if not schema.equals(stream.schema):
        raise EngineError(f"scan: the engine returns columns of\n{stream.schema}\nwhere pyiceberg returns\n{schema}")
    return stream._record_batches(schema)


def _dictionary_fields(projection: Schema, names: Sequence[str]) -> dict[str, pa.Field]:
    """The fields that pyiceberg returns for dictionary_columns: texts and binaries are encoded."""
    fields = {}
    for field in materialized(projection):
        if field.name in names:
            encodes = pa.types.is_string(field.type) or pa.types.is_binary(field.type)
            fields[field.name] = field.with_type(pa.dictionary(pa.int32(), field.type)) if encodes else field
    return fields


def _with_fields(batch: pa.RecordBatch, fields: Mapping[str, pa.Field]) -> pa.RecordBatch:
    """The batch with other fields for some columns."""
    if not fields:
        return batch
    schema = pa.schema([fields.get(field.name, field) for field in batch.schema], metadata=batch.schema.metadata)
    arrays = []
    for field, array in zip(schema, batch.columns, strict=True):
        if field.name in fields and pa.types.is_dictionary(field.type):
            array = array.cast(field.type.value_type).dictionary_encode()
        elif field.name in fields:
            array = with_type(array, field.type)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
