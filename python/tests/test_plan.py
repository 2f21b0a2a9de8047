"""Plans: pieces give the rows of the scan, and plan_files() gives pyiceberg's own tasks under enable()."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import ArrowScan, PyArrowFileIO
from pyiceberg.manifest import FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, StaticTable, Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)
from test_java_tables import CASES

import icebergexec
from conftest import load_case
from icebergexec._engine import Raw
from tests.generator import TableWriter

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "s": [f"row {i}" for i in range(10)]})


@pytest.fixture
def table(catalog: Any) -> Table:
    """Three data files; the first has position deletes, the first two equality deletes."""
    writer = TableWriter.create(catalog, "db.t", ROWS.schema)
    first = writer.append(ROWS)
    writer.append(ROWS)
    writer.delete_positions({first.file_path: [0, 1]})
    writer.delete_equal(["id"], pa.table({"id": pa.array([5], pa.int64())}))
    writer.append(ROWS)
    return writer.table


def fields(task: FileScanTask) -> tuple[Any, ...]:
    """All that a task says, where == compares only paths."""
    file = task.file
    return (file._data, file.spec_id, {d.file_path for d in task.delete_files}, str(task.residual))


def test_plan(table: Table) -> None:
    plan = icebergexec.plan(table)
    assert len(plan) == 3
    assert plan.row_count is None
    tasks = list(plan)
    assert [task.record_count for task in tasks] == [10, 10, 10]
    assert [task.position_delete_files for task in tasks] == [1, 1, 0]  # the delete file tells no bounds
    assert [task.equality_delete_files for task in tasks] == [1, 1, 0]
    assert plan.read_size_in_bytes == sum(task.read_size_in_bytes for task in tasks)
    assert plan.to_arrow()["path"].to_pylist() == [task.path for task in tasks]
    assert pa.table(plan).equals(plan.to_arrow())
    assert len(icebergexec.plan(table, "id > 100")) == 0
    assert not icebergexec.plan(table, "id > 100")
    first = table.metadata.snapshots[0].snapshot_id
    assert icebergexec.plan(table, snapshot_id=first).row_count == 10
    assert len(icebergexec.plan(table, from_snapshot_id=first)) == 2


@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_splits(table: Table, n: int) -> None:
    want = pa.table(icebergexec.scan(table, "id < 8"))
    splits = icebergexec.plan(table, "id < 8").splits(n)
    assert len(splits) == min(n, 3)
    assert sum(map(len, splits)) == 3
    for send in (
        lambda s: s,
        lambda s: pickle.loads(pickle.dumps(s)),
        lambda s: icebergexec.Split.from_json(s.to_json()),
    ):
        got = pa.concat_tables(pa.table(icebergexec.execute(send(split))) for split in splits)
        assert got.equals(want)
    assert pa.table(icebergexec.execute(splits[0], ("s",))).column_names == ["s"]


def test_mistakes(table: Table) -> None:
    plan = icebergexec.plan(table)
    with pytest.raises(icebergexec.InvalidArgumentError, match="n is 0"):
        plan.splits(0)
    with pytest.raises(icebergexec.InvalidArgumentError, match="split is a Plan"):
        icebergexec.execute(plan)  # type: ignore[arg-type]
    with pytest.raises(icebergexec.InvalidArgumentError, match="not the text of a Split"):
        icebergexec.Split.from_json("[]")
    split = plan.splits(1)[0]
    broken = icebergexec.Split(split.source, ('{"version": 1, "color": 2}',), 0)
    with pytest.raises(icebergexec.InvalidArgumentError, match=r'tasks\[0\].*unknown field "color"'):
        icebergexec.execute(broken)


VALUES: list[tuple[IcebergType, list[Any]]] = [
    (LongType(), [1, None, -5]),
    (StringType(), ["a", 'b"ö', None]),
    (DateType(), [0, -1, None]),
    (TimestamptzType(), [0, 1, None]),
    (DecimalType(9, 2), [Decimal("1.20"), Decimal("-0.01"), None]),
    (BinaryType(), [b"\0\xff", b"", None]),
]


@pytest.mark.parametrize(("of", "values"), VALUES, ids=str)
@pytest.mark.parametrize("row_filter", ["id >= 0", "id > 3", "p is null", "p is not null and id < 2"])
def test_same_tasks_as_pyiceberg(catalog: Any, of: IcebergType, values: list[Any], row_filter: str) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", of), NestedField(3, "x", DoubleType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
    table = catalog.create_table("db.p", schema=schema, partition_spec=spec)
    rows = {"id": [0, 1, 4, 5, 7, 9], "p": values * 2, "x": [0.5, None] * 3}
    types = table.schema().as_arrow()
    table.append(pa.table([pa.array(rows[field.name], field.type) for field in types], schema=types))
    scan = table.scan(row_filter)
    stock = list(scan.plan_files())
    with icebergexec.enabled():
        mine = list(scan.plan_files())
    assert mine == stock
    assert list(map(fields, mine)) == list(map(fields, stock))
    assert pickle.loads(pickle.dumps(mine)) == stock


class MovedIO(PyArrowFileIO):
    """Opens the Java-written tables where they are unpacked."""

    def __init__(self, prefixes: dict[str, str]) -> None:
        super().__init__()
        self._prefixes = prefixes

    def new_input(self, location: str) -> Any:
        for prefix in sorted(self._prefixes, key=len, reverse=True):
            if location.startswith(prefix):
                return super().new_input(self._prefixes[prefix] + location.removeprefix(prefix))
        return super().new_input(location)


@pytest.mark.parametrize("name", sorted(CASES))
def test_java_tables(java_tables: Path, prefixes: dict[str, str], name: str) -> None:
    location = load_case(java_tables / name)["metadata_location"]
    moved = MovedIO(prefixes).new_input(location).location
    scan = StaticTable.from_metadata(moved).scan()
    with icebergexec.enabled(path_prefixes=prefixes):
        try:
            mine = list(scan.plan_files())
        except icebergexec.Error as failure:
            pytest.skip(str(failure))
    scan.io = MovedIO(prefixes)
    try:
        stock = list(scan.plan_files())
    except Exception as failure:
        pytest.skip(f"pyiceberg does not plan it: {failure}")
    assert [task.file for task in mine] == [task.file for task in stock]
    for one, other in zip(mine, stock, strict=True):
        # Delete files that delete no row of the file are left out by one and not by the other.
        assert fields(FileScanTask(one.file, set(), one.residual)) == fields(
            FileScanTask(other.file, set(), other.residual)
        )
        for delete in one.delete_files ^ other.delete_files:
            assert delete.file_format == FileFormat.PUFFIN or delete.record_count == 0


def test_equality_deletes_are_attached_and_read(table: Table) -> None:
    scan = table.scan()
    with pytest.raises(ValueError, match="equality deletes"):
        scan.plan_files()
    with icebergexec.enabled():
        tasks = list(scan.plan_files())
        deletes = [sorted(delete.content.name for delete in task.delete_files) for task in tasks]
        assert deletes == [["EQUALITY_DELETES", "POSITION_DELETES"]] * 2 + [[]]
        assert [d.equality_ids for d in tasks[1].delete_files if d.content.name == "EQUALITY_DELETES"] == [[1]]
        reader = ArrowScan(table.metadata, table.io, table.schema(), scan.row_filter)
        assert reader.to_table(tasks).equals(scan.to_arrow())
        assert reader.to_table(tasks[1:2]).num_rows == 9
        with pytest.raises(icebergexec.UnsupportedError, match="plan all of them there"):
            reader.to_table([FileScanTask(tasks[0].file, tasks[0].delete_files)])


def test_text_of_a_split_is_a_request(table: Table) -> None:
    split = icebergexec.plan(table, "id = 1").splits(1)[0]
    text = split.to_json()
    assert icebergexec.Split.from_json(text).read_size_in_bytes == split.read_size_in_bytes
    with icebergexec.Engine() as engine:
        assert pa.table(
            engine._scan({name: Raw(json.dumps(value)) for name, value in json.loads(text).items()})
        ).num_rows


def test_files_rewritten_by_a_delete_keep_their_deletes(table: Table) -> None:
    with icebergexec.enabled():
        table.delete("id == 3")
        ids = table.scan().to_arrow()["id"].to_pylist()
    once = [0, 1, 2, 4, 6, 7, 8, 9]
    assert sorted(ids) == sorted([*once[2:], *once, *once, 5])
