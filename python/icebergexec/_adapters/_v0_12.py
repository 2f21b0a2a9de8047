"""Hooks for pyiceberg 0.12.x.

    place                             becomes
    DataScan.to_arrow                 a scan in the engine, as a table      (so to_pandas, to_polars, to_duckdb, to_ray)
    DataScan.to_arrow_batch_reader    a scan in the engine, streaming
    DataScan.count                    a scan in the engine that only counts
    DataScan.plan_files               a plan in the engine, as FileScanTasks
    ArrowScan.to_record_batches       a scan of tasks in the engine, if they have equality deletes

What comes back equals what pyiceberg 0.12.x returns: its schema with names,
types, nullability and metadata, its row order, and the rows that its row filter
keeps. Scans that the engine cannot reach (a storage or file format it does not
read, planning by a REST server) stay pyiceberg's own.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from types import NoneType
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import KeyDefaultDict, Record
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    NestedField,
    StructType,
    UUIDType,
)

from icebergexec import _config, _expressions
from icebergexec._adapters._hooks import Hook
from icebergexec._arrow import materialized, with_type
from icebergexec._engine import Raw, shared
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
        Hook(DataScan, "plan_files", plan_files),
        Hook(ArrowScan, "to_record_batches", to_record_batches),
    )


def to_arrow(original: Callable[..., pa.Table], scan: DataScan, dictionary_columns: tuple[str, ...] = ()) -> pa.Table:
    if not _in_reach(scan):
        return original(scan, dictionary_columns)
    projection = scan.projection()
    if not projection.fields:  # pyiceberg loses the number of rows then
        return schema_to_pyarrow(projection, include_field_ids=False).empty_table()
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
    if not projection.fields:
        return pa.RecordBatchReader.from_batches(schema_to_pyarrow(projection), [])
    try:
        stream = _open(scan, projection, large_types=True)
    except UnsupportedError as cause:
        return _instead(cause, original, scan, dictionary_columns)
    schema = schema_to_pyarrow(projection)
    batches = _batches(stream, schema)
    batches = _or_pyiceberg(batches, lambda cause: _instead(cause, original, scan, dictionary_columns))
    if dictionary_columns and (first := next(batches, None)) is not None:
        # As in pyiceberg, where these columns take their fields from the first batch, if there is one.
        fields = _dictionary_fields(projection, dictionary_columns)
        schema = pa.schema([fields.get(field.name, field) for field in schema], metadata=schema.metadata)
        batches = (_with_fields(batch, fields) for batch in itertools.chain((first,), batches))
    return closing_reader(schema, batches, stream.close)


def count(original: Callable[..., int], scan: DataScan) -> int:
    if not _in_reach(scan):
        return original(scan)
    _check_snapshot(scan)
    try:
        with _open(scan, Schema(), large_types=False) as stream:
            return stream._count()
    except UnsupportedError as cause:
        return int(_instead(cause, original, scan))


def plan_files(original: Callable[..., Iterable[FileScanTask]], scan: DataScan) -> Iterable[FileScanTask]:
    """Tasks as pyiceberg makes them; those of tables with equality deletes, too."""
    if _reading_in_pyiceberg.get() or not _in_reach(scan):
        return original(scan)
    _check_snapshot(scan)
    if scan.snapshot() is None:
        return []
    try:
        # A delete or overwrite reads whole files: those rows, too, that the filter does not match.
        request = {**_source(scan), "all_deletes": True, "metrics": True}
        with shared(_config.current())._plan(request) as stream:
            planner = _Planner(scan)
            return [planner.task(text) for batch in stream for text in batch["task"].to_pylist()]
    except UnsupportedError as cause:
        return list(_instead(cause, original, scan))


def to_record_batches(
    original: Callable[..., Iterator[pa.RecordBatch]], scan: ArrowScan, tasks: Iterable[FileScanTask]
) -> Iterator[pa.RecordBatch]:
    """Tasks with equality deletes, which pyiceberg does not apply, are read in the engine."""
    tasks = list(tasks)
    if _reading_in_pyiceberg.get() or not any(_has_equality_deletes(task) for task in tasks):
        yield from original(scan, tasks)
        return
    texts = []
    for task in tasks:
        text = getattr(task, _TEXT, None)
        if text is None:
            raise UnsupportedError(
                f"read {task.file.file_path}: tasks are read together with tasks that have equality deletes, and this one "
                "does not come from plan_files() under icebergexec.enable(); plan all of them there"
            )
        texts.append(text)
    metadata, row_filter = scan._table_metadata, scan._bound_row_filter
    request = {
        "metadata": metadata_json(metadata),
        "metadata_location": metadata.location,
        "filter": _expressions.to_wire(row_filter, metadata.schema(), scan._case_sensitive),
        "filter_mode": "pyiceberg-scan",
        "columns": _names(scan._projected_schema, metadata),
        "limit": None if scan._limit is None else max(int(scan._limit), 0),
        "tasks": Raw(f"[{','.join(texts)}]"),
    }
    with shared(_config.current())._scan(request) as stream:
        fields = _dictionary_fields(scan._projected_schema, scan._dictionary_columns)
        for batch in _batches(stream, materialized(scan._projected_schema)):
            yield _with_fields(batch, fields)


def _has_equality_deletes(task: FileScanTask) -> bool:
    return any(delete.content == DataFileContent.EQUALITY_DELETES for delete in task.delete_files)


_TEXT = "_icebergexec_task"  # where a FileScanTask keeps what it was made of


class _Planner:
    """Makes pyiceberg's tasks of the engine's."""

    def __init__(self, scan: DataScan) -> None:
        self._specs = scan.table_metadata.specs()
        self._schema = scan.table_metadata.schema()
        self._evaluators = KeyDefaultDict(scan._manifest_planner._build_residual_evaluator)
        self._residuals: dict[tuple[int, str], BooleanExpression] = {}
        self._types: dict[int, list[IcebergType]] = {}

    def task(self, text: str) -> FileScanTask:
        task = json.loads(text)
        file = self._file(task["data"])
        # The residual follows from the partition, which many files share.
        key = file.spec_id, repr(task["data"]["partition"])
        if key not in self._residuals:
            self._residuals[key] = self._evaluators[file.spec_id](file).residual_for(file.partition)
        deletes = {self._file(delete) for delete in task.get("deletes", ())}
        planned = FileScanTask(file, delete_files=deletes, residual=self._residuals[key])
        setattr(planned, _TEXT, text)
        return planned

    def _file(self, of: dict[str, Any]) -> DataFile:
        metrics = of.get("metrics", {})
        spec_id = of["spec_id"]
        if spec_id not in self._types:
            self._types[spec_id] = [f.field_type for f in self._specs[spec_id].partition_type(self._schema).fields]
        file = DataFile.from_args(
            content=_CONTENTS[of["content"]],
            file_path=of["path"],
            file_format=FileFormat[of["format"]],
            partition=Record(*map(_partition_value, self._types[spec_id], of["partition"])),
            record_count=of.get("record_count"),
            file_size_in_bytes=of["file_size_in_bytes"],
            **{name: _by_id(metrics.get(name)) for name in _COUNTS},
            **{name: _by_id(metrics.get(name), bytes.fromhex) for name in _BOUNDS},
            split_offsets=of.get("split_offsets"),
            equality_ids=of.get("equality_ids"),
            sort_order_id=of.get("sort_order_id"),
        )
        file.spec_id = spec_id
        return file


_CONTENTS = {
    "data": DataFileContent.DATA,
    "position-deletes": DataFileContent.POSITION_DELETES,
    "equality-deletes": DataFileContent.EQUALITY_DELETES,
}
_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


def _by_id(values: dict[str, Any] | None, convert: Callable[[Any], Any] = lambda value: value) -> Any:
    return None if values is None else {int(field_id): convert(value) for field_id, value in values.items()}


def _partition_value(of: IcebergType, value: Any) -> Any:
    """A partition value as pyiceberg has it, from the form of a filter's value."""
    match of:
        case _ if value is None:
            return None
        case DecimalType():
            return Decimal(value)
        case UUIDType():
            return UUID(value)
        case FixedType() | BinaryType():
            return bytes.fromhex(value)
        case FloatType() | DoubleType():
            return float(value)
    return value


# Set while pyiceberg's own code reads: then it plans, too, since it can read only what it can plan.
_reading_in_pyiceberg: ContextVar[bool] = ContextVar("reading_in_pyiceberg", default=False)


def _instead(cause: UnsupportedError, original: Callable[..., Any], scan: DataScan, *arguments: Any) -> Any:
    """What pyiceberg makes of a scan that the engine does not support; the engine's reason if it fails, too."""
    logger.info("scan of %s is left to pyiceberg: %s", name_of(scan), cause)
    token = _reading_in_pyiceberg.set(True)
    try:
        return original(scan, *arguments)
    except (ValueError, NotImplementedError) as failure:
        raise cause from failure
    finally:
        _reading_in_pyiceberg.reset(token)


# -- requests


def _check_snapshot(scan: DataScan) -> None:
    """Raise what to_arrow() raises. pyiceberg itself plans no files and counts no rows of a snapshot that does not exist."""
    if scan.snapshot_id is not None and scan.table_metadata.snapshot_by_id(scan.snapshot_id) is None:
        raise ValueError(f"Snapshot not found: {scan.snapshot_id}")


def _limit(scan: DataScan) -> int | None:
    """The limit. As for pyiceberg, a negative one returns no rows."""
    if not isinstance(scan.limit, (int, NoneType)):
        raise TypeError(f"limit is {scan.limit!r}; it must be a whole number or None")
    return None if scan.limit is None else max(int(scan.limit), 0)


def _open(scan: DataScan, projection: Schema, large_types: bool) -> Stream:
    """Start the scan in the engine."""
    return shared(_config.current())._scan(
        {**_source(scan), "columns": _columns(projection, scan), "limit": _limit(scan), "large_types": large_types}
    )


def _source(scan: DataScan) -> dict[str, Any]:
    """The members of a request that say what of which table."""
    metadata = scan.table_metadata
    snapshot = scan.snapshot()
    row_filter = scan.row_filter
    return {
        "metadata": metadata_json(metadata),
        "metadata_location": name_of(scan),
        # Without a snapshot id the current schema counts, with one the snapshot's, as in scan.projection().
        "snapshot_id": snapshot.snapshot_id if snapshot is not None and scan.snapshot_id is not None else None,
        # pyiceberg binds filters to the current schema, also those of an earlier snapshot.
        "filter": None
        if isinstance(row_filter, AlwaysTrue)
        else _expressions.to_wire(row_filter, metadata.schema(), scan.case_sensitive),
        "filter_mode": "pyiceberg-scan",
    }


def _columns(projection: Schema, scan: DataScan) -> list[str] | None:
    """The columns to ask for: whole ones by name, parts of structs by dotted names."""
    if projection.fields and "*" in scan.selected_fields:
        return None
    return _names(projection, scan.table_metadata)


def _names(projection: Schema, metadata: TableMetadata) -> list[str]:
    whole = {
        field.field_id: field for schema in (*metadata.schemas, metadata.schema()) for field in _all_fields(schema)
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


def is_scan(candidate: object) -> bool:
    """Whether this is what table.scan(...) returns."""
    return isinstance(candidate, DataScan)


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


def _or_pyiceberg(
    batches: Iterator[pa.RecordBatch], instead: Callable[[UnsupportedError], Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The batches; pyiceberg's if the engine meets something that it does not support before the first."""
    first = True
    try:
        for batch in batches:
            first = False
            yield batch
    except UnsupportedError as cause:
        if not first:
            raise
        yield from instead(cause)


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
