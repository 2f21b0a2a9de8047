"""Files of the Parquet writer, read with pyarrow, DuckDB, Polars and DataFusion.

The writer is driven by tests/tools/pqwrite: pyarrow supplies the values, other programs read them back.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import random
import shutil
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as ice
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")

EPOCH = dt.datetime(1970, 1, 1)
SOME = 1 << 40

# name: Iceberg type, Arrow type, a value of a random number generator
Generator = Callable[[random.Random], Any]
TYPES: dict[str, tuple[ice.IcebergType, pa.DataType, Generator]] = {
    "boolean": (ice.BooleanType(), pa.bool_(), lambda r: r.random() < 0.5),
    "int": (ice.IntegerType(), pa.int32(), lambda r: r.choice([-(2**31), 2**31 - 1, 0, r.randrange(-1000, 1000)])),
    "long": (ice.LongType(), pa.int64(), lambda r: r.choice([-(2**63), 2**63 - 1, r.randrange(-SOME, SOME)])),
    "float": (ice.FloatType(), pa.float32(), lambda r: float32(some_float(r))),
    "double": (ice.DoubleType(), pa.float64(), lambda r: some_float(r)),
    "decimal9": (ice.DecimalType(9, 2), pa.decimal128(9, 2), lambda r: some_decimal(r, 9, 2)),
    "decimal18": (ice.DecimalType(18, 3), pa.decimal128(18, 3), lambda r: some_decimal(r, 18, 3)),
    "decimal20": (ice.DecimalType(20, 0), pa.decimal128(20, 0), lambda r: some_decimal(r, 20, 0)),
    "decimal38": (ice.DecimalType(38, 10), pa.decimal128(38, 10), lambda r: some_decimal(r, 38, 10)),
    "date": (ice.DateType(), pa.date32(), lambda r: dt.date(1970, 1, 1) + dt.timedelta(days=r.randrange(-9999, 9999))),
    "time": (
        ice.TimeType(),
        pa.time64("us"),
        lambda r: (EPOCH + dt.timedelta(microseconds=r.randrange(86400 * 10**6))).time(),
    ),
    "timestamp": (ice.TimestampType(), pa.timestamp("us"), lambda r: r.randrange(-SOME, SOME) * 1000 + 7),
    "timestamptz": (ice.TimestamptzType(), pa.timestamp("us", "UTC"), lambda r: r.randrange(-SOME, SOME) * 1000 + 7),
    "timestamp_ns": (ice.TimestampNanoType(), pa.timestamp("ns"), lambda r: r.randrange(-SOME, SOME) * 1000 + 7),
    "timestamptz_ns": (
        ice.TimestamptzNanoType(),
        pa.timestamp("ns", "UTC"),
        lambda r: r.randrange(-SOME, SOME) * 1000 + 7,
    ),
    "string": (ice.StringType(), pa.string(), lambda r: some_string(r)),
    "binary": (ice.BinaryType(), pa.binary(), lambda r: r.choice([b"\xff" * 20, r.randbytes(r.randrange(30))])),
    "uuid": (ice.UUIDType(), pa.binary(16), lambda r: r.randbytes(16)),
    "fixed": (ice.FixedType(5), pa.binary(5), lambda r: r.randbytes(5)),
}


def float32(v: float) -> float:
    return float(struct.unpack("f", struct.pack("f", v))[0])


def some_float(r: random.Random) -> float:
    return r.choice(
        [float("nan"), 0.0, -0.0, float("inf"), float("-inf"), r.gauss(0, 100), r.gauss(0, 100), r.gauss(0, 100)]
    )


def some_decimal(r: random.Random, precision: int, scale: int) -> decimal.Decimal:
    digits = r.randrange(1, precision + 1)
    with decimal.localcontext(prec=60):
        return decimal.Decimal(r.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale)


def some_string(r: random.Random) -> str:
    return "".join(r.choice("az\x7fé€\ud7ff\uffff😀\U0010ffff") for _ in range(r.randrange(25)))


def order(value: Any) -> Any:
    """A key in Iceberg's order; None for what bounds leave out."""
    if isinstance(value, float):
        return None if value != value else (value, struct.pack(">d", value)[0] < 0x80)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


@dataclass
class Case:
    name: str
    properties: dict[str, str] = field(default_factory=dict)
    distinct: int = 1 << 30
    nulls: float = 0.2
    rows: tuple[int, ...] = (1500, 1, 499)
    threads: int = 1
    memory: int = 0


WRITE = "write.parquet."
SMALL_PAGES = {WRITE + "page-row-limit": "100", WRITE + "row-group-limit": "700"}
CASES = [
    Case("defaults"),
    Case("required_only", nulls=0.0, distinct=300),
    Case("dictionaries", SMALL_PAGES, distinct=12),
    Case("dictionaries_v2", {**SMALL_PAGES, WRITE + "page-version": "v2"}, distinct=12),
    Case("plain_pages", SMALL_PAGES),
    Case(
        "plain_v2_threads",
        {**SMALL_PAGES, WRITE + "page-version": "v2", WRITE + "compression-codec": "snappy"},
        threads=2,
    ),
    Case("full_dictionaries", {**SMALL_PAGES, WRITE + "dict-size-bytes": "400"}, distinct=90),
    Case(
        "small_pages",
        {WRITE + "page-size-bytes": "300", WRITE + "compression-codec": "gzip", WRITE + "compression-level": "9"},
    ),
    Case("all_null", SMALL_PAGES, nulls=1.0),
    Case("no_rows", rows=(0,)),
    Case("uncompressed", {WRITE + "compression-codec": "none"}, distinct=200),
    Case("lz4", {WRITE + "compression-codec": "lz4", **SMALL_PAGES}, distinct=200),
    Case("brotli", {WRITE + "compression-codec": "brotli"}, distinct=200),
    Case("zstd_19", {WRITE + "compression-level": "19"}, distinct=2000),
    Case("full_metrics", {"write.metadata.metrics.default": "full"}, distinct=500),
    Case("short_metrics", {"write.metadata.metrics.default": "truncate(1)"}, distinct=500),
    Case(
        "blooms",
        {**SMALL_PAGES, **{f"{WRITE}bloom-filter-enabled.column.{name}": "true" for name in TYPES}},
        distinct=2000,
    ),
    Case("little_memory", {WRITE + "compression-codec": "none"}, rows=(4000,) * 3, memory=1 << 20),
]


def schema_of() -> Schema:
    fields = [ice.NestedField(i + 1, name, t, required=False) for i, (name, (t, _, _)) in enumerate(TYPES.items())]
    fields.append(ice.NestedField(50, "position", ice.LongType(), required=True))
    inner = ice.StructType(
        ice.NestedField(61, "x", ice.DoubleType(), required=False),
        ice.NestedField(62, "y", ice.StringType(), required=True),
    )
    fields.append(ice.NestedField(60, "structure", inner, required=False))
    fields.append(
        ice.NestedField(70, "list", ice.ListType(71, ice.IntegerType(), element_required=False), required=False)
    )
    fields.append(
        ice.NestedField(
            80, "map", ice.MapType(81, ice.StringType(), 82, ice.LongType(), value_required=False), required=False
        )
    )
    deep = ice.StructType(
        ice.NestedField(92, "z", ice.ListType(93, ice.UUIDType(), element_required=True), required=False)
    )
    fields.append(ice.NestedField(90, "deep", ice.ListType(91, deep, element_required=False), required=False))
    return Schema(*fields)


def arrow_schema() -> pa.Schema:
    fields = [pa.field(name, t) for name, (_, t, _) in TYPES.items()]
    fields.append(pa.field("position", pa.int64(), nullable=False))
    fields.append(
        pa.field("structure", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.string(), nullable=False)]))
    )
    fields.append(pa.field("list", pa.list_(pa.int32())))
    fields.append(pa.field("map", pa.map_(pa.string(), pa.int64())))
    deep = pa.struct([pa.field("z", pa.list_(pa.field("element", pa.binary(16), nullable=False)))])
    fields.append(pa.field("deep", pa.list_(deep)))
    return pa.schema(fields)


def values_of(case: Case, rng: random.Random, name: str, n: int) -> list[Any]:
    make: Generator
    if name in TYPES:
        make = TYPES[name][2]
    else:
        make = {
            "structure": lambda r: {"x": maybe(r, case.nulls, some_float(r)), "y": some_string(r)},
            "list": lambda r: [maybe(r, case.nulls, r.randrange(100)) for _ in range(r.randrange(4))],
            "map": lambda r: [(str(i), maybe(r, case.nulls, r.randrange(100))) for i in range(r.randrange(3))],
            "deep": lambda r: [
                {"z": maybe(r, case.nulls, [r.randbytes(16) for _ in range(r.randrange(3))])}
                for _ in range(r.randrange(3))
            ],
        }[name]
    pool = [make(rng) for _ in range(min(case.distinct, max(n, 1)))]
    return [maybe(rng, case.nulls, rng.choice(pool)) for _ in range(n)]


def maybe(rng: random.Random, nulls: float, value: Any) -> Any:
    return None if rng.random() < nulls else value


def table_of(case: Case) -> pa.Table:
    rng = random.Random(case.name)
    schema = arrow_schema()
    rows = sum(case.rows)
    columns = []
    for f in schema:
        values = list(range(rows)) if f.name == "position" else values_of(case, rng, f.name, rows)
        columns.append(pa.array(values, f.type))
    return pa.table(columns, schema=schema)


def write_stream(path: Path, table: pa.Table, rows: tuple[int, ...]) -> None:
    with pa.ipc.new_stream(path, table.schema) as out:
        start = 0
        for n in rows:
            for b in table.slice(start, n).combine_chunks().to_batches():
                out.write_batch(b)
            start += n


@dataclass
class Written:
    folder: Path
    tables: dict[str, pa.Table]

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.parquet")

    def report(self, name: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        return document


COPIES: dict[str, list[dict[str, Any]]] = {
    # Row groups of several files, in another order, with new ones between them.
    "copy": [
        {"copy": "dictionaries.parquet", "groups": [2, 0]},
        {"write": "defaults.arrow"},
        {"copy": "blooms.parquet", "groups": [0, 1, 2]},
        {"copy": "plain_v2_threads.parquet", "groups": [1]},
    ],
    "copy_foreign": [{"copy": "foreign.parquet", "groups": [1, 0]}, {"write": "defaults.arrow"}],
    "copy_byte_decimals": [{"copy": "byte_decimals.parquet", "groups": [1, 0]}, {"write": "defaults.arrow"}],
    "copy_without_ids": [{"copy": "without_ids.parquet", "groups": [0]}, {"write": "defaults.arrow"}],
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("parquet")
    schema = json.loads(schema_of().model_dump_json())
    tables, files = {}, []
    for case in CASES:
        tables[case.name] = table_of(case)
        write_stream(folder / f"{case.name}.arrow", tables[case.name], case.rows)
        files.append({
            "name": case.name, "batches": f"{case.name}.arrow", "schema": schema, "properties": case.properties,
            "threads": case.threads, "memory": case.memory, "steps": [{"write": f"{case.name}.arrow"}],
        })  # fmt: skip
    # What pyiceberg would write: pyarrow's file, with field ids.
    foreign = tables["defaults"].cast(with_ids(arrow_schema(), schema_of()))
    options = {"row_group_size": 900, "compression": "snappy", "write_page_index": True, "data_page_size": 2000}
    pq.write_table(foreign, folder / "foreign.parquet", store_decimal_as_integer=True, **options)
    pq.write_table(foreign, folder / "byte_decimals.parquet", store_decimal_as_integer=False, **options)
    pq.write_table(tables["defaults"], folder / "without_ids.parquet")
    groups = {name: split(tables[name], 700) for name in ("dictionaries", "blooms", "plain_v2_threads")}
    whole, foreign_groups = tables["defaults"], split(tables["defaults"], 900)
    tables["copy"] = pa.concat_tables(
        [groups["dictionaries"][2], groups["dictionaries"][0], whole, *groups["blooms"], groups["plain_v2_threads"][1]]
    )
    tables["copy_foreign"] = tables["copy_byte_decimals"] = pa.concat_tables(
        [foreign_groups[1], foreign_groups[0], whole]
    )
    tables["copy_without_ids"] = whole
    for name, steps in COPIES.items():
        file = {"name": name, "batches": "defaults.arrow", "schema": schema, "properties": {}, "steps": steps}
        files.append(file | ({"like": "byte_decimals.parquet"} if name == "copy_byte_decimals" else {}))
    (folder / "cases.json").write_text(json.dumps(files))
    run = subprocess.run(["go", "run", "./tests/tools/pqwrite", str(folder)], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return Written(folder, tables)


def split(table: pa.Table, rows: int) -> list[pa.Table]:
    return [table.slice(start, rows) for start in range(0, table.num_rows, rows)]


def with_ids(schema: pa.Schema, table: Schema) -> pa.Schema:
    """The schema with the field ids of the table's."""

    def convert(f: pa.Field, want: ice.NestedField) -> pa.Field:
        t, w = f.type, want.field_type
        if isinstance(w, ice.StructType):
            t = pa.struct([convert(a, b) for a, b in zip(t, w.fields, strict=True)])
        elif isinstance(w, ice.ListType):
            t = pa.list_(convert(t.value_field, w.element_field))
        elif isinstance(w, ice.MapType):
            t = pa.map_(convert(t.key_field, w.key_field), convert(t.item_field, w.value_field))
        return f.with_type(t).with_metadata({b"PARQUET:field_id": str(want.field_id).encode()})

    return pa.schema([convert(f, w) for f, w in zip(schema, table.fields, strict=True)])


NAMES = [c.name for c in CASES] + list(COPIES)


def same(got: pa.ChunkedArray, want: pa.ChunkedArray) -> bool:
    """Whether values are the same, NaNs and the sign of zero included."""
    return [repr(v) for v in got.to_pylist()] == [repr(v) for v in want.to_pylist()]


@pytest.mark.parametrize("name", NAMES)
def test_pyarrow_reads(written: Written, name: str) -> None:
    want = written.tables[name]
    got = pq.read_table(written.path(name), page_checksum_verification=True)
    assert got.num_rows == want.num_rows
    for column in want.column_names:
        have = got[column]
        if column == "uuid":
            have = have.cast(pa.binary(16))
        if column == "deep":
            have = pa.chunked_array([pa.array(uuids_as_bytes(have.to_pylist()), want[column].type)])
        assert have.type == want[column].type, column
        assert same(have, want[column]), column


@pytest.mark.parametrize("name", NAMES)
def test_schema(written: Written, name: str) -> None:
    f = pq.ParquetFile(written.path(name))
    assert Schema.model_validate_json(f.metadata.metadata[b"iceberg.schema"].decode()) == schema_of()
    assert f.metadata.created_by.startswith("icebergexec version ")
    kinds = {c.name: (c.physical_type, str(c.logical_type)) for c in (f.schema.column(i) for i in range(len(TYPES)))}
    integers = name != "copy_byte_decimals"
    assert kinds["decimal9"] == ("INT32" if integers else "FIXED_LEN_BYTE_ARRAY", "Decimal(precision=9, scale=2)")
    assert kinds["decimal18"] == ("INT64" if integers else "FIXED_LEN_BYTE_ARRAY", "Decimal(precision=18, scale=3)")
    assert kinds["decimal38"] == ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=10)")
    assert kinds["uuid"] == ("FIXED_LEN_BYTE_ARRAY", "UUID")
    assert kinds["string"] == ("BYTE_ARRAY", "String")
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in kinds["timestamptz"][1]
    assert "isAdjustedToUTC=false, timeUnit=nanoseconds" in kinds["timestamp_ns"][1]

    def ids(fields: Any) -> Iterator[int]:
        for f in fields:
            yield int(f.metadata[b"PARQUET:field_id"])
            if pa.types.is_struct(f.type):
                yield from ids(f.type)
            elif pa.types.is_map(f.type):
                yield from ids([f.type.key_field, f.type.item_field])
            elif pa.types.is_list(f.type):
                yield from ids([f.type.value_field])

    assert list(ids(f.schema_arrow)) == [*range(1, len(TYPES) + 1), 50, 60, 61, 62, 70, 71, 80, 81, 82, 90, 91, 92, 93]


@pytest.mark.parametrize("name", NAMES)
def test_statistics(written: Written, name: str) -> None:
    """Every row group's statistics hold its values, and are exact as far as pyarrow understands them."""
    f = pq.ParquetFile(written.path(name))
    start = 0
    for g in range(f.num_row_groups):
        group = f.metadata.row_group(g)
        rows = written.tables[name].slice(start, group.num_rows)
        start += group.num_rows
        for i, column in enumerate(TYPES):
            c = group.column(i)
            assert c.has_offset_index
            values = rows[column].to_pylist()
            there = [v for v in values if v is not None]
            assert c.statistics.null_count == len(values) - len(there)
            keys = [order(v) for v in there if order(v) is not None]
            assert c.has_column_index or not keys or column in ("float", "double")
            assert c.statistics.has_min_max == bool(keys), column
            if keys and column not in ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "uuid"):
                low, high = order(c.statistics.min), order(c.statistics.max)
                if isinstance(low, tuple):  # a zero bounds both zeros
                    low, high, keys = low[0], high[0], [k[0] for k in keys]
                assert (low, high) == (min(keys), max(keys)), column


def metrics(report: dict[str, Any], name: str, field_id: int) -> Any:
    return report[name].get(str(field_id))


@pytest.mark.parametrize("name", NAMES)
def test_iceberg_metrics(written: Written, name: str) -> None:
    report, table = written.report(name), written.tables[name]
    f = pq.ParquetFile(written.path(name))
    assert report["Records"] == table.num_rows
    assert report["Size"] == Path(written.path(name)).stat().st_size
    starts = [f.metadata.row_group(g).column(0) for g in range(f.num_row_groups)]
    assert (report["SplitOffsets"] or []) == [c.dictionary_page_offset or c.data_page_offset for c in starts]
    flat = {name: table[name] for name in TYPES}
    x = table["structure"].combine_chunks()
    leaves = [(i + 1, TYPES[name][0], column) for i, (name, column) in enumerate(flat.items())]
    leaves += (
        [(61, ice.DoubleType(), x.flatten()[0]), (62, ice.StringType(), x.flatten()[1])]
        if isinstance(x, pa.StructArray)
        else []
    )
    for field_id, t, column in leaves:
        values = column.to_pylist()
        if isinstance(t, ice.UUIDType):
            values = [v and uuid.UUID(bytes=v) for v in values]
        elif isinstance(t, (ice.TimestampType, ice.TimestamptzType, ice.TimestampNanoType, ice.TimestamptzNanoType)):
            values = column.cast(pa.int64()).to_pylist()
        elif isinstance(t, ice.DateType):
            values = column.cast(pa.int32()).to_pylist()
        elif isinstance(t, ice.TimeType):
            values = column.cast(pa.int64()).to_pylist()
        there = [v for v in values if v is not None]
        keys = [order(v) for v in there if order(v) is not None]
        sizes = [
            f.metadata.row_group(g).column(f.schema.names.index("x") if field_id > 60 else field_id - 1)
            for g in range(f.num_row_groups)
        ]
        assert field_id > 60 or metrics(report, "ColumnSizes", field_id) == sum(c.total_compressed_size for c in sizes)
        assert metrics(report, "ValueCounts", field_id) == len(values)
        assert metrics(report, "NullCounts", field_id) == len(values) - len(there)
        if isinstance(t, (ice.FloatType, ice.DoubleType)) and name not in COPIES:
            assert metrics(report, "NaNCounts", field_id) == len(there) - len(keys)
        lower, upper = metrics(report, "LowerBounds", field_id), metrics(report, "UpperBounds", field_id)
        if not keys:
            assert lower is upper is None
            continue
        low = order(from_bytes(t, base64.b64decode(lower)))
        assert low <= min(keys), (field_id, low, min(keys))
        if upper is None:  # no greater value is short enough
            assert max(keys)[:1] in (b"\xff", "\U0010ffff".encode()[:1]), field_id
            continue
        high = order(from_bytes(t, base64.b64decode(upper)))
        assert high >= max(keys), (field_id, high, max(keys))
        if not isinstance(t, (ice.StringType, ice.BinaryType)) and name not in COPIES:
            assert (low, high) == (min(keys), max(keys)), field_id
    for field_id in (71, 81, 82, 93):
        assert metrics(report, "ColumnSizes", field_id) is not None
        assert metrics(report, "LowerBounds", field_id) is metrics(report, "UpperBounds", field_id) is None


def test_copies_refused(written: Written) -> None:
    assert "cannot be copied as it is" in written.report("copy_without_ids")["Refused"]
    for name in ("copy", "copy_foreign", "copy_byte_decimals"):
        assert written.report(name)["Refused"] == ""


# Values as programs that have no type for them give them.
DUCKDB_CASTS = {"uuid": "CAST(uuid AS VARCHAR) AS uuid", "timestamptz_ns": "epoch_ns(timestamptz_ns) AS timestamptz_ns"}


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_reads(written: Written, name: str) -> None:
    import duckdb

    want = written.tables[name]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    columns = ", ".join(DUCKDB_CASTS.get(c, f'"{c}"') for c in want.column_names)
    got = connection.sql(f"SELECT {columns} FROM read_parquet('{written.path(name)}')").to_arrow_table()
    for column in want.column_names:
        have, expected = got[column], want[column]
        if column == "uuid":
            expected = pa.chunked_array(
                [pa.array([v and str(uuid.UUID(bytes=v)) for v in expected.to_pylist()], pa.string())]
            )
        elif column == "timestamptz_ns":
            expected = expected.cast(pa.int64())
        elif column == "deep":
            have = pa.chunked_array([pa.array(uuids_as_bytes(have.to_pylist()), expected.type)])
        elif not pa.types.is_nested(expected.type):
            have = have.cast(expected.type)
        assert same(have, expected), column


def uuids_as_bytes(rows: list[Any]) -> list[Any]:
    def element(v: Any) -> Any:
        return v and {"z": v["z"] and [e if isinstance(e, bytes) else uuid.UUID(str(e)).bytes for e in v["z"]]}

    return [row and [element(v) for v in row] for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_polars_reads(written: Written, name: str) -> None:
    import polars as pl

    want = written.tables[name]
    got = pl.read_parquet(written.path(name))
    assert got.height == want.num_rows
    for column in want.column_names:
        have = got[column]
        if pa.types.is_nested(want[column].type):
            rows = have.to_list()
            if column == "map":
                rows = [r if r is None else list(r.items()) for r in rows]
            assert [repr(v) for v in rows] == [repr(v) for v in want[column].to_pylist()]
        else:
            assert same(pa.chunked_array([have.to_arrow().cast(want[column].type)]), want[column]), column


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("all_null", "no_rows")])
def test_filters(written: Written, name: str) -> None:
    """Programs that prune by statistics, page indexes and Bloom filters find what is there."""
    import datafusion
    import duckdb
    import polars as pl

    table, path = written.tables[name], written.path(name)
    context = datafusion.SessionContext()
    context.sql("SET datafusion.execution.parquet.pushdown_filters = true")
    context.sql("SET datafusion.execution.parquet.enable_page_index = true")
    context.register_parquet("t", path)
    rng = random.Random(name)
    literals: dict[str, Callable[[Any], str]] = {
        "int": str, "long": str, "decimal9": str, "decimal38": str, "date": lambda v: f"DATE '{v}'",
        "string": lambda v: f"'{v}'", "position": str,
    }  # fmt: skip
    for column, literal in literals.items():
        values = [v for v in table[column].to_pylist() if v is not None]
        ordered = sorted(set(values), key=order)
        for v in {ordered[0], ordered[-1], rng.choice(ordered), rng.choice(ordered)}:
            equal, below = values.count(v), sum(order(w) < order(v) for w in values)
            expression = pl.lit(v, dtype=pl.scan_parquet(path).collect_schema()[column])
            scan = pl.scan_parquet(path)
            assert scan.filter(pl.col(column) == expression).collect().height == equal, column
            assert scan.filter(pl.col(column) < expression).collect().height == below, column
            scalar = pa.scalar(v, table[column].type)
            assert (
                pq.read_table(path, columns=[column], filters=pa.compute.field(column) == scalar).num_rows == equal
            ), column
            if "\x7f" in literal(v) and not literal(v).isprintable():
                continue
            for query in (duckdb.sql, context.sql):
                cast = (
                    f"CAST('{v:f}' AS DECIMAL({table[column].type.precision}, {table[column].type.scale}))"
                    if "decimal" in column
                    else literal(v)
                )
                rows = query(
                    f"SELECT count(*) FROM {'t' if query == context.sql else repr(path)} WHERE {column} = {cast}"
                )
                n = rows.fetchall()[0][0] if query == duckdb.sql else rows.to_pydict().popitem()[1][0]
                assert n == equal, (column, v, query)
