"""enable(), disable(), enabled(): what is replaced where, for whom, and that it is put back."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pyarrow as pa
import pyiceberg
import pytest
from pyarrow import orc
from pyiceberg.expressions import And, BooleanExpression, EqualTo, IsNull, Not, NotNull, Or
from pyiceberg.io.pyarrow import PyArrowFileIO, schema_to_pyarrow
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

import icebergexec
from icebergexec._adapters import for_installed_pyiceberg
from tests.generator import TableWriter

HOOKS = for_installed_pyiceberg().hooks()
ORIGINALS = {hook.place: hook.owner.__dict__[hook.name] for hook in HOOKS}


def replaced() -> set[str]:
    return {hook.place for hook in HOOKS if hook.owner.__dict__[hook.name] is not ORIGINALS[hook.place]}


@pytest.fixture
def table(catalog: Any) -> Table:
    """A table that pyiceberg alone cannot read."""
    rows = pa.table({"id": pa.array(range(10), pa.int64()), "s": [f"v{i}" for i in range(10)]})
    writer = TableWriter.create(catalog, "db.t", rows.schema)
    writer.append(rows)
    writer.delete_equal(["id"], pa.table({"id": [3]}))
    return writer.table


def reads(table: Table) -> bool:
    """Whether scans run in the engine here."""
    try:
        return bool(table.scan().to_arrow().num_rows == 9)
    except ValueError as failure:
        if "does not yet support equality deletes" not in str(failure):
            raise
        return False


def test_enable_and_disable(table: Table) -> None:
    assert not reads(table)
    icebergexec.enable()
    assert replaced() == set(ORIGINALS)
    assert reads(table)
    icebergexec.enable(memory_limit="64MiB")
    assert icebergexec.engine().stats()["memory_limit"] == 64 << 20
    icebergexec.enable()  # what was given before stays
    assert icebergexec.config()["memory-limit"] == 64 << 20
    icebergexec.disable()
    assert replaced() == set()
    assert not reads(table)
    assert icebergexec.config()["memory-limit"] == 512 << 20
    icebergexec.disable()


def test_enabled_is_for_one_context(table: Table) -> None:
    elsewhere: list[bool] = []
    with icebergexec.enabled():
        assert reads(table)
        other = threading.Thread(target=lambda: elsewhere.append(reads(table)))
        other.start()
        other.join()
    assert elsewhere == [False]
    assert not reads(table)
    assert replaced() == set()


def test_enabled_is_for_one_task(table: Table) -> None:
    async def inside(ready: asyncio.Event, done: asyncio.Event) -> bool:
        with icebergexec.enabled():
            ready.set()
            await done.wait()
            return reads(table)

    async def main() -> tuple[bool, bool]:
        ready, done = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(inside(ready, done))
        await ready.wait()
        outside = reads(table)
        done.set()
        return await task, outside

    assert asyncio.run(main()) == (True, False)


def test_a_reader_outlives_its_block(table: Table) -> None:
    with icebergexec.enabled(memory_limit="32MiB"):
        reader = table.scan().to_arrow_batch_reader()
    assert reader.read_all().num_rows == 9


def test_many_threads_enable_and_disable(table: Table) -> None:
    def work() -> None:
        for _ in range(20):
            with icebergexec.enabled(threads=1):
                assert reads(table)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replaced() == set()


def test_what_others_put_on_top_stays() -> None:
    icebergexec.enable()
    ours = DataScan.count
    try:
        DataScan.count = lambda scan: ours(scan)  # type: ignore[method-assign]
        theirs = DataScan.count
        icebergexec.disable()
        assert DataScan.count is theirs
        assert DataScan.__dict__["to_arrow"] is ORIGINALS["pyiceberg.table.DataScan.to_arrow"]
    finally:
        DataScan.count = ORIGINALS["pyiceberg.table.DataScan.count"]  # type: ignore[method-assign]


def test_unknown_pyiceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyiceberg, "__version__", "0.11.1")
    with pytest.raises(icebergexec.UnsupportedError, match=r"pyiceberg 0\.11\.1 is not known.*knows 0\.12\.x"):
        icebergexec.enable()


def test_bad_settings_change_nothing() -> None:
    with pytest.raises(icebergexec.InvalidArgumentError, match=r"memory-limit.*argument of enable"):
        icebergexec.enable(memory_limit="1MiB")
    with pytest.raises(TypeError, match="unknown setting 'memory'"):
        icebergexec.enable(memory=1)
    assert replaced() == set()


def orc_table(catalog: Any) -> Table:
    """One ORC file, which the engine leaves to pyiceberg."""
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))
    writer = TableWriter.create(catalog, "db.orc", schema)
    rows = pa.table(
        {"id": [1, 2, 3], "s": ["a", "b", "c"]}, schema=schema_to_pyarrow(schema, file_format=FileFormat.ORC)
    )
    location = f"{writer.table.location()}/data/rows.orc"
    with writer.table.io.new_output(location).create() as stream:
        orc.write_table(rows, stream)
    size = len(writer.table.io.new_input(location))
    file = writer._file(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.ORC,
        partition=Record(),
        record_count=3,
        file_size_in_bytes=size,
    )
    writer.commit(data=[file])
    return writer.table


def test_what_the_engine_cannot_read_stays_pyicebergs(catalog: Any, caplog: pytest.LogCaptureFixture) -> None:
    table = orc_table(catalog)
    stock = table.scan().to_arrow()
    with icebergexec.enabled(), caplog.at_level("INFO", logger="icebergexec"):
        assert table.scan().to_arrow().equals(stock)
        assert table.scan().to_arrow_batch_reader().read_all()["id"].to_pylist() == [1, 2, 3]
        assert table.scan("id > 1").count() == 2
        assert "is left to pyiceberg" in caplog.text
        with pytest.raises(icebergexec.UnsupportedError, match="ORC"):
            icebergexec.scan(table).to_pyarrow().read_all()
    TableWriter(table).delete_equal(["id"], pa.table({"id": [1]}))
    table = catalog.load_table("db.orc")
    with icebergexec.enabled(), pytest.raises(icebergexec.UnsupportedError, match="ORC"):
        table.scan().to_arrow()  # neither can


def test_other_storage_stays_pyicebergs(table: Table) -> None:
    class OwnFileIO(PyArrowFileIO):
        """Where a path means something else, for all we know."""

    table.io = OwnFileIO(table.io.properties)
    with icebergexec.enabled():
        assert not reads(table)
        assert "OwnFileIO" in str(icebergexec.explain(table.scan()))


@pytest.mark.parametrize("delete_filter", ["id = 7", "s = 'v7'", "id > 6 and id < 8"])
def test_a_rewrite_does_not_bring_deleted_rows_back(delete_filter: str, table: Table, catalog: Any) -> None:
    with icebergexec.enabled():
        table.delete(delete_filter)  # a filter that no deleted row matches
        table = catalog.load_table("db.t")
        assert table.scan().to_arrow()["id"].to_pylist() == [0, 1, 2, 4, 5, 6, 8, 9]
        table.overwrite(pa.table({"id": pa.array([100], pa.int64()), "s": ["new"]}), overwrite_filter="id < 2")
        table = catalog.load_table("db.t")
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 4, 5, 6, 8, 9, 100]
        table.upsert(pa.table({"id": pa.array([2, 3], pa.int64()), "s": ["updated", "inserted"]}), join_cols=["id"])
        rows = catalog.load_table("db.t").scan().to_arrow().sort_by("id").to_pylist()
        assert [row["id"] for row in rows] == [2, 3, 4, 5, 6, 8, 9, 100]
        assert [row["s"] for row in rows[:2]] == ["updated", "inserted"]


def test_tasks_read_with_another_filter(table: Table) -> None:
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    with icebergexec.enabled():
        tasks = list(table.scan("id = 7").plan_files())
        assert len(tasks[0].delete_files) == 1  # it cannot hit a matching row, but others
        rows = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(tasks)
        assert rows["id"].to_pylist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def nested_table(catalog: Any) -> Table:
    kind = pa.struct([("n", pa.int64()), ("s", pa.string())])
    rows = pa.table(
        {
            "id": pa.array(range(9), pa.int64()),
            "st": pa.array([None if i % 3 == 0 else {"n": i, "s": None} for i in range(9)], kind),
        }
    )
    writer = TableWriter.create(catalog, "db.nested", rows.schema)
    writer.append(rows)
    return writer.table


@pytest.mark.parametrize(
    "row_filter",
    [
        IsNull("st"),
        NotNull("st"),
        Not(IsNull("st")),
        Or(IsNull("st"), EqualTo("id", 1)),
        And(NotNull("st"), EqualTo("id", 1)),
        IsNull("st.n"),
        NotNull("st.n"),
        IsNull("st.s"),
    ],
    ids=str,
)
def test_filters_of_structs_and_in_structs(row_filter: BooleanExpression, catalog: Any) -> None:
    scan = nested_table(catalog).scan(row_filter)
    rows, paths = scan.to_arrow(), [task.file.file_path for task in scan.plan_files()]
    with icebergexec.enabled():
        assert scan.to_arrow().equals(rows)
        assert scan.to_arrow_batch_reader().read_all()["id"].to_pylist() == rows["id"].to_pylist()
        assert scan.count() == rows.num_rows
        assert [task.file.file_path for task in scan.plan_files()] == paths
        assert "runs in" in str(icebergexec.explain(scan))


def test_a_filter_that_nobody_can_apply(catalog: Any) -> None:
    table = nested_table(catalog)
    TableWriter(table).delete_equal(["id"], pa.table({"id": [3]}))
    scan = catalog.load_table("db.nested").scan(IsNull("st"))
    with icebergexec.enabled():
        for read in (scan.to_arrow, scan.to_arrow_batch_reader, scan.count):
            with pytest.raises(icebergexec.UnsupportedError, match='column "st" is of the type struct'):
                read()
        assert 'pyiceberg, because filter: column "st"' in str(icebergexec.explain(scan))


@pytest.mark.parametrize("snapshot_id", [5, 0])
def test_a_snapshot_that_does_not_exist(snapshot_id: int, catalog: Any) -> None:
    scan = nested_table(catalog).scan(snapshot_id=snapshot_id)
    with pytest.raises(ValueError, match=f"Snapshot not found: {snapshot_id}"):
        scan.to_arrow()
    with icebergexec.enabled():
        for read in (scan.to_arrow, scan.to_arrow_batch_reader, scan.count, scan.plan_files):
            with pytest.raises(ValueError, match=f"Snapshot not found: {snapshot_id}"):
                read()


@pytest.mark.parametrize(
    "options",
    [{"limit": -1}, {"limit": 0}, {"limit": True}, {"selected_fields": ()}, {"selected_fields": (), "limit": 2}],
    ids=str,
)
def test_few_rows_and_no_columns(options: dict[str, Any], catalog: Any) -> None:
    scan = nested_table(catalog).scan(**options)
    rows, streamed = scan.to_arrow(), scan.to_arrow_batch_reader().read_all()
    assert rows.num_rows < 2
    with icebergexec.enabled():
        for found, wanted in ((scan.to_arrow(), rows), (scan.to_arrow_batch_reader().read_all(), streamed)):
            assert found.equals(wanted)
            assert found.schema.equals(wanted.schema, check_metadata=True)
        if "limit" in options and "selected_fields" not in options:
            assert scan.count() == rows.num_rows
