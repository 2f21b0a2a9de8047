"""Under enable(), pyiceberg's methods return what they return without: schema, metadata, types, order and rows."""

from __future__ import annotations

import datetime
import difflib
import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg import expressions as e
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import icebergexec
from tests.generator import TableWriter

NAN = float("nan")
UTC = datetime.timezone.utc


def outcome(work: Callable[[], Any]) -> Any:
    """The result, or the kind of failure."""
    try:
        return work()
    except Exception as failure:
        return failure


def same(mine: Any, stock: Any, offsets: bool = False) -> None:
    """offsets: whether 32-bit and 64-bit offsets differ. Those of to_arrow() have a test of their own."""
    if isinstance(stock, Exception):
        assert isinstance(mine, Exception), f"stock raises {stock!r}"
        return
    if isinstance(mine, Exception):
        raise mine
    if isinstance(stock, pa.Table):
        found, wanted = (mine.schema, stock.schema) if offsets else (narrow(mine.schema), narrow(stock.schema))
        difference = list(difflib.unified_diff(lines(wanted), lines(found), "stock", "mine", n=1, lineterm=""))
        if difference or not found.equals(wanted, check_metadata=True):
            raise AssertionError("\n".join(difference) or "the schemas differ")
        assert mine.schema.metadata == stock.schema.metadata
        for name, a, b in zip(mine.column_names, mine.columns, stock.columns, strict=True):
            assert equal(a, b), f"{name}: {a.to_pylist()} --- stock: {b.to_pylist()}"
    else:
        assert mine == stock


def narrow(schema: pa.Schema) -> pa.Schema:
    """The schema with 32-bit offsets."""

    def field(of: pa.Field) -> pa.Field:
        return pa.field(of.name, kind(of.type), of.nullable, of.metadata)

    def kind(of: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(of):
            return pa.struct([field(inner) for inner in of])
        if pa.types.is_map(of):
            return pa.map_(field(of.key_field), field(of.item_field))
        if pa.types.is_large_list(of) or pa.types.is_list(of):
            return pa.list_(field(of.value_field))
        return pa.string() if pa.types.is_large_string(of) else pa.binary() if pa.types.is_large_binary(of) else of

    return pa.schema([field(of) for of in schema], metadata=schema.metadata)


def lines(schema: pa.Schema) -> list[str]:
    text: str = schema.to_string(truncate_metadata=False)
    return text.splitlines()


def equal(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    """Equal values, NaN equal to NaN."""
    if a.equals(b):
        return True
    return repr(a.to_pylist()) == repr(b.to_pylist())


METHODS: dict[str, Callable[[DataScan], Any]] = {
    "to_arrow": lambda scan: scan.to_arrow(),
    "to_arrow_batch_reader": lambda scan: scan.to_arrow_batch_reader().read_all(),
}


def check(table: Table, **options: Any) -> int:
    """Compare every method for one scan; returns the number of rows."""
    rows = 0
    for method, run in METHODS.items():
        stock = outcome(lambda run=run: run(table.scan(**options)))  # type: ignore[misc]
        with icebergexec.enabled():
            mine = outcome(lambda run=run: run(table.scan(**options)))  # type: ignore[misc]
        try:
            same(mine, stock, offsets=method != "to_arrow")
        except AssertionError as difference:
            raise AssertionError(f"{method} of {options}: {difference}") from None
        if method == "to_arrow" and isinstance(stock, pa.Table):
            rows = stock.num_rows
            with icebergexec.enabled():
                assert table.scan(**options).count() == rows
    return rows


# -- schemas

EVERY_TYPE = Schema(
    NestedField(1, "id", LongType(), required=True, doc="the key"),
    NestedField(2, "b", BooleanType()),
    NestedField(3, "i", IntegerType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "d", DoubleType()),
    NestedField(6, "dec", DecimalType(9, 2)),
    NestedField(7, "dec38", DecimalType(38, 10)),
    NestedField(8, "day", DateType()),
    NestedField(9, "t", TimeType()),
    NestedField(10, "ts", TimestampType()),
    NestedField(11, "tz", TimestamptzType()),
    NestedField(12, "s", StringType()),
    NestedField(13, "u", UUIDType()),
    NestedField(14, "fix", FixedType(3)),
    NestedField(15, "bin", BinaryType()),
    NestedField(16, "l", ListType(20, StringType(), element_required=False)),
    NestedField(17, "m", MapType(21, StringType(), 22, LongType(), value_required=False)),
    NestedField(
        18,
        "st",
        StructType(
            NestedField(23, "x", IntegerType(), doc="inside"),
            NestedField(24, "y", StringType()),
            NestedField(25, "z", StructType(NestedField(26, "w", StringType(), required=True))),
        ),
    ),
    NestedField(19, "ls", ListType(27, StructType(NestedField(28, "p", StringType())), element_required=False)),
)


def rows_of_every_type(first: int, count: int) -> list[dict[str, Any]]:
    rows = []
    for i in range(first, first + count):
        if i % 4 == 3:
            rows.append({"id": i, "ls": []})
            continue
        rows.append(
            {
                "id": i,
                "b": i % 2 == 0,
                "i": i - 5,
                "f": [0.5, NAN, -0.0, math.inf][i % 4],
                "d": [-math.inf, 0.0, NAN, 1.5][i % 4],
                "dec": Decimal(i).scaleb(-2),
                "dec38": -Decimal(i).scaleb(20),
                "day": datetime.date(1970, 1, 1) + datetime.timedelta(days=i - 5),
                "t": datetime.time(i % 24, 1, 2, 3),
                "ts": datetime.datetime(1969, 12, 31, 23, 59, 59, i),
                "tz": datetime.datetime(2024, 1, 1, tzinfo=UTC) + datetime.timedelta(hours=i),
                "s": f"näme {i}" if i % 5 else "",
                "u": UUID(int=i).bytes,
                "fix": bytes([i, 0, 255]),
                "bin": b"\x00" * (i % 3),
                "l": [None, "a", str(i)][: i % 4],
                "m": [(str(k), k if k else None) for k in range(i % 3)],
                "st": None if i % 5 == 1 else {"x": i, "y": None, "z": {"w": str(i)} if i % 2 else None},
                "ls": [{"p": str(i)}, None, {"p": None}],
            }
        )
    return rows


def small(arrow: pa.Schema) -> pa.Schema:
    """As most writers other than pyiceberg make it: strings, binaries and lists with 32-bit offsets."""
    from pyiceberg.io.pyarrow import pyarrow_to_schema

    from icebergexec._arrow import materialized

    return materialized(pyarrow_to_schema(arrow))


def make(catalog: Any, how: str, **options: Any) -> Table:
    """Two files with rows of every type, written by pyiceberg or by a writer that keeps no Arrow schema."""
    if how == "plain":
        writer = TableWriter.create(catalog, "db.t", EVERY_TYPE, **options)
        arrow = writer.table.schema().as_arrow()
        for first in (0, 8):
            writer.append(pa.Table.from_pylist(rows_of_every_type(first, 8), schema=arrow))
        return writer.table
    table = catalog.create_table("db.t", schema=EVERY_TYPE, **options)
    arrow = table.schema().as_arrow()
    arrow = small(arrow) if how == "pyiceberg, small" else arrow
    for first in (0, 8):
        table.append(pa.Table.from_pylist(rows_of_every_type(first, 8), schema=arrow))
    return table


WRITERS = ["plain", "pyiceberg, large", "pyiceberg, small"]


@pytest.mark.parametrize("how", WRITERS)
def test_every_type(how: str, catalog: Any) -> None:
    table = make(catalog, how)
    assert check(table) == 16
    for field in table.schema().fields:
        check(table, selected_fields=(field.name,))
    check(table, selected_fields=("st.x", "s"))
    check(table, selected_fields=("st.z.w",))
    check(table, selected_fields=("ls.element.p", "id"))
    check(table, selected_fields=("S", "ID"), case_sensitive=False)
    check(table, selected_fields=("S",))
    for limit in (1, 7, 8, 9, 16, 100):
        check(table, limit=limit)
    check(table, row_filter="id < 0")
    check(table, row_filter="id = 3 or id = 12")
    check(table, row_filter="ID > 5", case_sensitive=False)
    check(table, row_filter="ID > 5")
    check(table, row_filter="id > 5", selected_fields=("s",), limit=3)


@pytest.mark.parametrize("how", WRITERS)
def test_offset_widths(how: str, catalog: Any) -> None:
    """to_arrow() takes 32-bit or 64-bit offsets from the files, and 64-bit ones for what they lack."""
    table = make(catalog, how)
    stock = table.scan().to_arrow()
    with icebergexec.enabled():
        same(table.scan().to_arrow(), stock, offsets=True)
    with table.update_schema() as update:
        update.add_column("s2", StringType())
        update.add_column(("st", "new"), StringType())
    stock = table.scan().to_arrow()
    with icebergexec.enabled():
        same(table.scan().to_arrow(), stock, offsets=True)


def test_lists_of_structs_keep_their_nulls(catalog: Any) -> None:
    """Where pyiceberg reads the null as an empty list."""
    schema = Schema(
        NestedField(1, "l", ListType(2, StructType(NestedField(3, "x", LongType())), element_required=False))
    )
    writer = TableWriter.create(catalog, "db.t", schema)
    rows: list[dict[str, Any]] = [{"l": [{"x": 1}]}, {"l": None}, {"l": []}]
    writer.append(pa.Table.from_pylist(rows, schema=writer.table.schema().as_arrow()))
    table = writer.table
    assert table.scan().to_arrow()["l"].to_pylist() == [[{"x": 1}], [], []]
    with icebergexec.enabled():
        assert table.scan().to_arrow()["l"].to_pylist() == [[{"x": 1}], None, []]


def test_no_snapshot_and_no_rows(catalog: Any) -> None:
    table = catalog.create_table("db.t", schema=EVERY_TYPE)
    assert check(table) == 0
    table.append(table.schema().as_arrow().empty_table())
    assert check(table) == 0


@pytest.mark.parametrize("how", WRITERS)
def test_evolution(how: str, catalog: Any) -> None:
    """Old files under a new schema: columns and fields added, dropped, renamed, moved, promoted."""
    table = make(catalog, how)
    before = table.current_snapshot().snapshot_id  # type: ignore[union-attr]
    with table.update_schema() as update:
        update.add_column("s2", StringType(), doc="new")
        update.add_column("l2", ListType(100, StringType(), element_required=False))
        update.add_column("st2", StructType(NestedField(100, "q", StringType())))
        update.add_column("m2", MapType(100, StringType(), 101, StringType(), value_required=False))
        update.add_column(("st", "new"), StringType())
        update.add_column(("ls", "q"), StringType())
        update.update_column("i", LongType())
        update.update_column("f", DoubleType())
        update.update_column("dec", DecimalType(18, 2))
        update.rename_column("s", "text")
        update.rename_column("st.x", "ex")
        update.delete_column("bin")
        update.delete_column("st.y")
        update.move_first("day")
        update.move_after("st.new", "st.x")
    check(table)
    check(table, row_filter="text is not null")
    check(table, row_filter="i > 0")
    check(table, row_filter="s2 is null")
    check(table, row_filter="s2 != 'x'")
    check(table, row_filter="st.ex > 3")
    check(table, snapshot_id=before)
    for row_filter in (
        "text = ''",
        "s2 is null",
        "s2 = 'x'",
        "i > 0",
        "st.new is null",
        "dec > 0.01",
        "id in (1, 2) and f < 1",
    ):
        check(table, snapshot_id=before, row_filter=row_filter)
    arrow = table.schema().as_arrow()
    arrow = small(arrow) if how == "pyiceberg, small" else arrow
    rows = [
        {
            "id": 100,
            "text": "t",
            "s2": "t",
            "l2": ["a"],
            "st": {"ex": 1, "new": "n"},
            "st2": {"q": "q"},
            "i": 1 << 40,
            "ls": [],
        }
    ]
    rows.append({"id": 101, "ls": []})
    data = pa.Table.from_pylist(rows, schema=arrow)
    if how == "plain":
        TableWriter(table).append(data)
        table = catalog.load_table("db.t")
    else:
        table.append(data)
    check(table)
    check(table, row_filter="id >= 100")
    check(table, row_filter="id < 100")
    check(table, row_filter="s2 = 't'")
    check(table, selected_fields=("st", "s2"))
    check(table, selected_fields=("st.new",))


def test_partitioned(catalog: Any) -> None:
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "p", StringType()), NestedField(3, "v", DoubleType())
    )
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "part"), PartitionField(1, 1001, BucketTransform(2), "bucket")
    )
    writer = TableWriter.create(catalog, "db.t", schema, partition_spec=spec)
    bucket = BucketTransform(2).transform(LongType())
    rows = [
        {"id": i, "p": None if i % 7 == 0 else "abc"[i % 3], "v": NAN if i % 5 == 0 else float(i)} for i in range(40)
    ]
    for partition in itertools.product(["a", "b", "c", None], [0, 1]):
        chosen = [row for row in rows if (row["p"], bucket(row["id"])) == partition]
        if chosen:
            writer.append(pa.Table.from_pylist(chosen, schema=schema.as_arrow()), Record(*partition))
    table = writer.table
    assert check(table) == 40
    for text in (
        "p = 'a'",
        "p != 'a'",
        "p is null",
        "p in ('a', 'b')",
        "p not in ('a', 'b')",
        "p = 'a' and v > 3",
        "p > 'a'",
    ):
        check(table, row_filter=text)
        check(table, row_filter=f"({text}) and id in (1, 2, 3, 14)")
    check(table, row_filter="id = 14")


def test_position_deletes(catalog: Any) -> None:
    writer = TableWriter.create(catalog, "db.t", EVERY_TYPE)
    arrow = writer.table.schema().as_arrow()
    files = [writer.append(pa.Table.from_pylist(rows_of_every_type(i, 8), schema=arrow)) for i in (0, 8)]
    writer.delete_positions({files[0].file_path: [0, 3], files[1].file_path: list(range(8))})
    assert check(writer.table) == 6
    check(writer.table, row_filter="id > 2")
    check(writer.table, row_filter="id > 2", limit=2)


def test_branches_tags_and_snapshots(catalog: Any) -> None:
    table = catalog.create_table("db.t", schema=pa.schema([("x", pa.int64())]))
    for i in range(3):
        table.append(pa.table({"x": [i]}))
    first = table.history()[0].snapshot_id
    table.manage_snapshots().create_tag(first, "one").create_branch(first, "side").commit()
    table.append(pa.table({"x": [100]}), branch="side")
    for snapshot in table.history():
        check(table, snapshot_id=snapshot.snapshot_id)
    check(table, snapshot_id=1234)
    for name in ("main", "side", "one", "nowhere"):
        stock = outcome(lambda name=name: table.scan().use_ref(name).to_arrow())  # type: ignore[misc]
        with icebergexec.enabled():
            same(outcome(lambda name=name: table.scan().use_ref(name).to_arrow()), stock)  # type: ignore[misc]


@pytest.mark.parametrize("how", WRITERS)
def test_dictionary_columns(how: str, catalog: Any) -> None:
    table = make(catalog, how)
    for columns in (("s",), ("s", "bin"), ("id", "s"), ("nothing",)):
        for run in (
            lambda scan, columns=columns: scan.to_arrow(dictionary_columns=columns),  # type: ignore[misc]
            lambda scan, columns=columns: scan.to_arrow_batch_reader(dictionary_columns=columns).read_all(),  # type: ignore[misc]
        ):
            stock = outcome(lambda run=run: run(table.scan()))  # type: ignore[misc]
            with icebergexec.enabled():
                same(outcome(lambda run=run: run(table.scan())), stock)  # type: ignore[misc]


def test_other_libraries(catalog: Any) -> None:
    table = make(catalog, "pyiceberg, large")
    scan = table.scan(selected_fields=("id", "s", "d", "ts"))
    pandas, polars = scan.to_pandas(), scan.to_polars()
    duckdb = scan.to_duckdb("t").sql("select * from t order by id").fetchall()
    with icebergexec.enabled():
        assert scan.to_pandas().equals(pandas)
        assert scan.to_polars().equals(polars, null_equal=True)
        assert repr(scan.to_duckdb("t").sql("select * from t order by id").fetchall()) == repr(duckdb)


# -- predicates: every operator on every type, with null, NaN and both zeros

VALUES: dict[str, list[Any]] = {
    "b": [False, True],
    "i": [-5, 0, 3, 2**31 - 1],
    "l": [-(2**63), -5, 0, 3, 2**40],
    "f": [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, NAN],
    "d": [-math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, NAN],
    "dec": [Decimal("-1.50"), Decimal("0.00"), Decimal("1.50")],
    "day": [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)],
    "t": [datetime.time(0, 0), datetime.time(23, 59, 59, 999999)],
    "ts": [datetime.datetime(1969, 12, 31, 23, 59), datetime.datetime(2024, 2, 29)],
    "tz": [datetime.datetime(1969, 12, 31, 23, 59, tzinfo=UTC), datetime.datetime(2024, 2, 29, tzinfo=UTC)],
    "s": ["", "a", "ab", "b", "ä"],
    "bin": [b"", b"a", b"ab", b"\xff"],
}
FIELDS = {
    "b": BooleanType(), "i": IntegerType(), "l": LongType(), "f": FloatType(), "d": DoubleType(), "dec": DecimalType(9, 2),
    "day": DateType(), "t": TimeType(), "ts": TimestampType(), "tz": TimestamptzType(), "s": StringType(), "bin": BinaryType(),
}  # fmt: skip


def predicate_table(catalog: Any, metrics: str) -> Table:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        *[NestedField(i, name, field_type) for i, (name, field_type) in enumerate(FIELDS.items(), 2)],
        NestedField(50, "n", StructType(NestedField(51, "i", IntegerType()), NestedField(52, "d", DoubleType()))),
    )
    table = catalog.create_table("db.p", schema=schema, properties={"write.metadata.metrics.default": metrics})
    longest = max(map(len, VALUES.values()))
    rows = []
    for k in range(2 * longest + 2):
        row: dict[str, Any] = {
            name: values[k % len(values)] if (k + i) % 4 else None for i, (name, values) in enumerate(VALUES.items())
        }
        row["id"] = k
        row["n"] = None if k % 3 == 0 else {"i": row["i"], "d": row["d"]}
        rows.append(row)
    arrow = table.schema().as_arrow()
    table.append(pa.Table.from_pylist(rows, schema=arrow))
    table.append(pa.Table.from_pylist([{"id": 1000}, {"id": 1001}], schema=arrow))  # all null
    table.append(pa.Table.from_pylist([{"id": 1002, "f": NAN, "d": NAN, "n": {"d": NAN}}], schema=arrow))
    with table.update_schema() as update:
        update.add_column("added", LongType())
    return table


COMPARISONS = [e.EqualTo, e.NotEqualTo, e.LessThan, e.LessThanOrEqual, e.GreaterThan, e.GreaterThanOrEqual]


def literals(name: str) -> list[Any]:
    return [value for value in VALUES[name] if value == value]  # a literal cannot be NaN


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    from pyiceberg.catalog.sql import SqlCatalog

    made = {}
    for metrics in ("none", "full"):
        folder = tmp_path_factory.mktemp(metrics)
        catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
        catalog.create_namespace("db")
        made[metrics] = predicate_table(catalog, metrics)
    return made


def rows_kept(table: Table, row_filter: e.BooleanExpression) -> Any:
    return outcome(lambda: table.scan(row_filter, selected_fields=("id",)).to_arrow()["id"].to_pylist())


def check_filter(tables: dict[str, Table], row_filter: e.BooleanExpression) -> None:
    stock = rows_kept(tables["none"], row_filter)  # without metrics: what the row filter keeps
    with icebergexec.enabled():
        for metrics, table in tables.items():
            mine = rows_kept(table, row_filter)
            if isinstance(stock, Exception) and not isinstance(mine, Exception):
                continue  # the engine may do more
            if isinstance(mine, Exception) and not isinstance(stock, Exception):
                raise AssertionError(f"{row_filter}: {mine!r}") from mine
            if not isinstance(stock, Exception):
                assert mine == stock, f"{row_filter} with metrics {metrics}: {mine} --- stock: {stock}"


@pytest.mark.parametrize("name", [*VALUES, "n.i", "n.d"])
def test_every_operator(name: str, tables: dict[str, Table]) -> None:
    values = literals(name.removeprefix("n."))
    predicates: list[e.BooleanExpression] = [e.IsNull(name), e.NotNull(name), e.IsNaN(name), e.NotNaN(name)]
    predicates += [kind(name, value) for kind in COMPARISONS for value in values]
    for size in (2, 3):
        predicates += [
            kind(name, chosen) for kind in (e.In, e.NotIn) for chosen in itertools.combinations(values, size)
        ][:12]
    if name in ("s", "bin"):
        predicates += [kind(name, value) for kind in (e.StartsWith, e.NotStartsWith) for value in values]
    for predicate in predicates:
        check_filter(tables, predicate)
        check_filter(tables, e.Not(predicate))


@pytest.mark.parametrize(
    "row_filter",
    [
        "added is null",
        "added is not null",
        "added = 1",
        "added != 1",
        "added > 1",
        "added in (1, 2)",
        "added not in (1, 2)",
        "not (added = 1)",
    ],
)
def test_a_column_that_files_lack(row_filter: str, tables: dict[str, Table]) -> None:
    from icebergexec._expressions import parse

    check_filter(tables, parse(row_filter))


def predicates() -> st.SearchStrategy[e.BooleanExpression]:
    names = st.sampled_from([*VALUES, "n.i", "n.d"])

    def leaf(name: str) -> st.SearchStrategy[e.BooleanExpression]:
        values = literals(name.removeprefix("n."))
        one = st.sampled_from(values)
        return st.one_of(
            st.sampled_from([e.IsNull(name), e.NotNull(name), e.IsNaN(name), e.NotNaN(name)]),
            st.builds(lambda kind, value: kind(name, value), st.sampled_from(COMPARISONS), one),
            st.builds(
                lambda kind, chosen: kind(name, chosen),
                st.sampled_from([e.In, e.NotIn]),
                st.sets(one, min_size=1, max_size=4),
            ),
        )

    return st.recursive(
        names.flatmap(leaf),
        lambda inner: st.one_of(st.builds(e.And, inner, inner), st.builds(e.Or, inner, inner), st.builds(e.Not, inner)),
        max_leaves=6,
    )


@given(row_filter=predicates())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_combinations(row_filter: e.BooleanExpression, tables: dict[str, Table]) -> None:
    check_filter(tables, row_filter)
