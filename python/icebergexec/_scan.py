"""Scans: from a table and pyiceberg's options to the engine's request."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from icebergexec import _config
from icebergexec._engine import Raw, shared
from icebergexec._stream import Stream
from icebergexec.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata

Source: TypeAlias = Union["Table", "Transaction", str, "os.PathLike[str]"]
Filter: TypeAlias = Union[str, "BooleanExpression"]


def scan(
    table: Source,
    row_filter: Filter | None = None,
    selected_fields: Sequence[str] = ("*",),
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    limit: int | None = None,
    case_sensitive: bool = True,
    memory_limit: int | str | None = None,
    path_prefixes: Mapping[str, str] | None = None,
    batch_rows: int | None = None,
    large_types: bool = False,
) -> Stream:
    """The rows of an Iceberg table that survive its deletes and match a filter, in file order.

    Args:
        table: A pyiceberg Table, StaticTable or Transaction (whose uncommitted changes count), or the location of a
            table metadata file.
        row_filter: A pyiceberg expression or its text, with Iceberg's rules for null and NaN: null matches `!=`,
            `not in` and `not starts with` and no other comparison; NaN is greater than every other value.
        selected_fields: The columns to return, in this order; ("*",) for all. The metadata columns `_file`, `_pos`,
            `_spec_id`, `_partition`, `_row_id` and `_last_updated_sequence_number` can be named, too.
        snapshot_id: The snapshot to read; the current one by default.
        ref: The branch or tag to read instead.
        limit: How many rows to return at most.
        case_sensitive: Whether column names must match in case.
        memory_limit: Caps this scan inside the engine's limit.
        path_prefixes: Location prefixes to open elsewhere, instead of those of the configuration.
        batch_rows: How many rows a batch has at most.
        large_types: Whether strings, binaries and lists come in their Arrow forms with 64-bit offsets.
    """
    return shared(_config.current())._scan(
        request(
            table,
            row_filter,
            selected_fields,
            snapshot_id=snapshot_id,
            ref=ref,
            limit=limit,
            case_sensitive=case_sensitive,
            memory_limit=memory_limit,
            path_prefixes=path_prefixes,
            batch_rows=batch_rows,
            large_types=large_types,
        )
    )


def request(
    table: Source,
    row_filter: Filter | None = None,
    selected_fields: Sequence[str] = ("*",),
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    limit: int | None = None,
    case_sensitive: bool = True,
    memory_limit: int | str | None = None,
    path_prefixes: Mapping[str, str] | None = None,
    batch_rows: int | None = None,
    large_types: bool = False,
) -> dict[str, Any]:
    """The engine's request for a scan."""
    columns = column_names("scan", selected_fields)
    filter_: Raw | None = None
    if row_filter is not None:
        try:
            from icebergexec import _expressions
        except ImportError:
            raise ImportError(
                "filters need pyiceberg; run: pip install 'pyiceberg[pyarrow]'", name="pyiceberg"
            ) from None
        filter_ = _expressions.to_wire(_expressions.parse(row_filter))
    arguments = _config.parse_arguments({"memory_limit": memory_limit, "path_prefixes": path_prefixes})
    return {
        **source(table),
        "snapshot_id": snapshot_id,
        "ref": ref,
        "columns": columns,
        "filter": filter_,
        "case_sensitive": case_sensitive,
        "limit": limit,
        "batch_rows": batch_rows,
        "large_types": large_types,
        **{name.replace("-", "_"): setting.value for name, setting in arguments.items()},
    }


def column_names(operation: str, selected_fields: Sequence[str]) -> list[str] | None:
    """The columns of a request; None for all."""
    if isinstance(selected_fields, str):
        raise InvalidArgumentError(
            f"{operation}: selected_fields is a sequence of column names, such as ({selected_fields!r},)"
        )
    names = list(selected_fields) if isinstance(selected_fields, Iterable) else [selected_fields]
    if not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(
            f"{operation}: selected_fields is {selected_fields!r}; it must be a sequence of column names, such as ('id',), "
            "or ('*',) for all columns"
        )
    return None if "*" in names else names


def source(table: Source) -> dict[str, Any]:
    """The members of a request that name the table."""
    if isinstance(table, (str, os.PathLike)):
        return {"metadata_location": os.fspath(table)}
    metadata = getattr(table, "table_metadata", None)  # a Transaction: with what it has staged
    named = getattr(table, "_table", table)
    if metadata is None:
        metadata = getattr(table, "metadata", None)
    if metadata is None or not hasattr(metadata, "model_dump_json"):
        raise InvalidArgumentError(
            f"table is a {type(table).__name__}; it must be a pyiceberg Table, StaticTable or Transaction, "
            "or the location of a table metadata file"
        )
    return {"metadata_location": getattr(named, "metadata_location", None), "metadata": metadata_json(metadata)}


def metadata_json(metadata: TableMetadata) -> Raw:
    """Table metadata as JSON. pyiceberg's own method refuses format version 3, which its base class writes."""
    from pyiceberg.typedef import IcebergBaseModel

    return Raw(IcebergBaseModel.model_dump_json(metadata))
