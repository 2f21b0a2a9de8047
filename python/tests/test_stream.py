"""Streams and engines: what they return, when they end, and what is left behind."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import nanoarrow
import polars
import pyarrow as pa
import pytest
from pyiceberg import expressions as e
from pyiceberg.table import Table

import icebergexec
from tests.generator import TableWriter

ROWS = 50_000


@pytest.fixture
def table(catalog: Any) -> Table:
    """Five files of 10,000 rows; every tenth row is deleted by key, the first of each file by position."""
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": [f"value {i}" for i in range(ROWS)]})
    writer = TableWriter.create(catalog, "db.t", rows.schema)
    files = [writer.append(rows.slice(i * 10_000, 10_000), row_group_size=3000) for i in range(5)]
    writer.delete_equal(["id"], pa.table({"id": list(range(0, ROWS, 10))}))
    writer.delete_positions({file.file_path: [1] for file in files})
    return writer.table


ALIVE = [i for i in range(ROWS) if i % 10 and i % 10_000 != 1]


def test_rows_in_file_order(table: Table) -> None:
    assert icebergexec.scan(table).to_pyarrow().read_all()["id"].to_pylist() == ALIVE


def test_sources(table: Table) -> None:
    location = table.metadata_location
    for source in (
        table,
        table.transaction(),
        location,
        location.removeprefix("file://"),
        Path(location.removeprefix("file://")),
    ):
        assert icebergexec.scan(source, limit=3).to_pyarrow().read_all()["id"].to_pylist() == ALIVE[:3]


def test_a_transaction_reads_what_it_has_staged(table: Table) -> None:
    transaction = table.transaction()
    transaction.append(pa.table({"id": pa.array([-1], pa.int64()), "s": ["new"]}))
    rows = icebergexec.scan(transaction, row_filter="id < 2").to_pyarrow().read_all()
    assert rows["s"].to_pylist() == ["new"]
    assert icebergexec.scan(table, row_filter="id < 2").to_pyarrow().read_all().num_rows == 0


def test_columns_filter_limit(table: Table) -> None:
    stream = icebergexec.scan(table, row_filter="id >= 20 and id < 40", selected_fields=("s",), limit=5, batch_rows=2)
    assert stream.schema.names == ["s"]
    batches = list(stream)
    assert max(batch.num_rows for batch in batches) <= 2
    assert [value for batch in batches for value in batch["s"].to_pylist()] == [
        f"value {i}" for i in (21, 22, 23, 24, 25)
    ]


def test_columns_come_as_asked(table: Table) -> None:
    assert icebergexec.scan(table, selected_fields=("s", "id")).schema.names == ["s", "id"]
    with pytest.raises(icebergexec.InvalidArgumentError, match="sequence of column names"):
        icebergexec.scan(table, selected_fields="id")


def test_large_types(table: Table) -> None:
    assert icebergexec.scan(table).schema.field("s").type == pa.string()
    stream = icebergexec.scan(table, large_types=True)
    assert stream.schema.field("s").type == pa.large_string()
    assert stream.to_pyarrow().read_all()["s"].type == pa.large_string()


def test_iteration_gives_record_batches_and_can_go_on(table: Table) -> None:
    stream = icebergexec.scan(table, batch_rows=1000)
    first = next(iter(stream))
    assert isinstance(first, pa.RecordBatch)
    rest = [i for batch in stream for i in batch["id"].to_pylist()]
    assert first["id"].to_pylist() + rest == ALIVE
    assert list(stream) == []
    assert stream.closed
    assert stream.schema.names == ["id", "s"]


def test_context_manager_closes(table: Table) -> None:
    with icebergexec.scan(table) as stream:
        batch = next(iter(stream))
    assert stream.closed
    with pytest.raises(icebergexec.Cancelled, match="closed"):
        next(iter(stream))
    assert batch.num_rows == len(batch["id"].to_pylist())  # what was read stays valid
    stream.close()


def open_streams(engine: icebergexec.Engine) -> int:
    gc.collect()
    return int(engine.stats()["open_streams"])


@pytest.mark.parametrize("way", ["close", "with", "collect", "end", "collect early"])
def test_a_reader_ends_its_stream(way: str, table: Table) -> None:
    with icebergexec.Engine() as engine:
        reader = engine.scan(table, batch_rows=100).to_pyarrow()
        assert isinstance(reader, pa.RecordBatchReader)
        assert open_streams(engine) == 1
        if way == "close":
            reader.read_next_batch()
            reader.close()
        elif way == "with":
            with reader:
                reader.read_next_batch()
        elif way == "end":
            reader.read_all()
        elif way == "collect early":
            reader.read_next_batch()
            del reader
        else:
            del reader
        assert open_streams(engine) == 0


def test_consumers(table: Table) -> None:
    assert polars.DataFrame(icebergexec.scan(table))["id"].to_list() == ALIVE
    assert pa.table(icebergexec.scan(table))["id"].to_pylist() == ALIVE
    assert pa.RecordBatchReader.from_stream(icebergexec.scan(table)).read_all().num_rows == len(ALIVE)
    reader = icebergexec.scan(table).to_pyarrow()
    assert duckdb.from_arrow(reader).aggregate("count(*), sum(id)").fetchall() == [(len(ALIVE), sum(ALIVE))]
    assert nanoarrow.ArrayStream(icebergexec.scan(table)).read_all().to_pylist()[0] == {"id": 2, "s": "value 2"}


def test_an_exported_stream_belongs_to_its_consumer(table: Table) -> None:
    engine = icebergexec.Engine()
    stream = engine.scan(table)
    reader = pa.RecordBatchReader.from_stream(stream)
    with pytest.raises(icebergexec.InvalidArgumentError):
        next(iter(stream))
    del stream, engine  # neither ends what the consumer has
    gc.collect()
    assert reader.read_all()["id"].to_pylist() == ALIVE


def test_closing_the_engine_ends_its_streams(table: Table) -> None:
    engine = icebergexec.Engine()
    stream = engine.scan(table, batch_rows=10)
    batch = next(iter(stream))
    ids = batch["id"].to_pylist()
    exported = pa.RecordBatchReader.from_stream(engine.scan(table))
    engine.close()
    with pytest.raises(icebergexec.Cancelled):
        list(stream)
    with pytest.raises(OSError):  # noqa: PT011 - pyarrow's, with the errno of a cancelled stream
        exported.read_all()
    with pytest.raises(icebergexec.Cancelled):
        engine.scan(table)
    assert batch["id"].to_pylist() == ids == ALIVE[: len(ids)]
    engine.close()


def test_cancel_from_another_thread(table: Table) -> None:
    stream = icebergexec.scan(table, batch_rows=1)
    next(iter(stream))
    canceller = threading.Thread(target=stream.cancel)
    canceller.start()
    canceller.join()
    with pytest.raises(icebergexec.Cancelled):
        list(stream)


def test_typed_errors_reach_the_users_of_a_reader(table: Table) -> None:
    for entry in table.inspect.data_files().to_pylist()[3:]:
        Path(entry["file_path"].removeprefix("file://")).unlink()
    with pytest.raises(FileNotFoundError, match=r"\.parquet"):
        icebergexec.scan(table).to_pyarrow().read_all()
    with pytest.raises(icebergexec.NotFoundError, match=r"\.parquet"):
        list(icebergexec.scan(table))


def test_stats(table: Table) -> None:
    stream = icebergexec.scan(table)
    assert stream.stats()["rows"] == 0
    rows = sum(batch.num_rows for batch in stream)
    assert stream.stats()["rows"] == rows == len(ALIVE)
    engine = icebergexec.engine()
    assert engine.stats()["memory_limit"] == 512 << 20
    assert "512 MiB" in repr(engine)


def test_two_configurations_at_once(table: Table) -> None:
    with icebergexec.enabled(memory_limit="64MiB"):
        small = icebergexec.engine()
    with icebergexec.enabled(memory_limit="128MiB"):
        large = icebergexec.engine()
        assert icebergexec.engine() is large
    assert small is not large
    assert small.stats()["memory_limit"] == 64 << 20
    assert large.stats()["memory_limit"] == 128 << 20
    assert icebergexec.engine().stats()["memory_limit"] == 512 << 20


def test_many_threads(table: Table) -> None:
    results: list[list[int]] = []

    def work() -> None:
        for _ in range(3):
            results.append(icebergexec.scan(table).to_pyarrow().read_all()["id"].to_pylist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [ALIVE] * 24


def test_without_pyarrow(table: Table) -> None:
    program = f"""
import sys
sys.modules["pyarrow"] = None
import icebergexec, nanoarrow
stream = icebergexec.scan({table.metadata_location!r}, selected_fields=("id",))
assert [child.name for child in nanoarrow.Schema(stream.schema).fields] == ["id"]
ids = []
for batch in stream:
    ids += [row["id"] for row in nanoarrow.Array(batch).to_pylist()]
    try:
        batch.__arrow_c_array__()
    except ValueError as e:
        assert "taken already" in str(e)
    else:
        raise AssertionError("taken twice")
print(len(ids), sum(ids))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(len(ALIVE)), str(sum(ALIVE))], done.stderr


def test_unread_at_exit(table: Table) -> None:
    program = f"""
import icebergexec
stream = icebergexec.scan({table.metadata_location!r}, batch_rows=10)
reader = icebergexec.scan({table.metadata_location!r}, batch_rows=10).to_pyarrow()
capsule = icebergexec.scan({table.metadata_location!r}).__arrow_c_stream__()
held = [next(iter(stream)), reader.read_next_batch()]
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"row_filter": "nothing = 1"}, icebergexec.InvalidArgumentError, "nothing"),
        ({"selected_fields": ("nothing",)}, icebergexec.InvalidArgumentError, "nothing"),
        ({"snapshot_id": 7}, icebergexec.NotFoundError, "7"),
        ({"ref": "nowhere"}, icebergexec.NotFoundError, "nowhere"),
        ({"limit": -1}, icebergexec.InvalidArgumentError, "limit"),
        ({"memory_limit": "1KiB"}, icebergexec.InvalidArgumentError, "memory-limit"),
        ({"row_filter": "id = 'x'"}, icebergexec.InvalidArgumentError, "id"),
        ({"snapshot_id": 7, "ref": "main"}, icebergexec.InvalidArgumentError, "only one of them"),
    ],
)
def test_bad_requests(options: dict[str, Any], kind: type[Exception], sentence: str, table: Table) -> None:
    with pytest.raises(kind, match=sentence):
        icebergexec.scan(table, **options)


def test_bad_tables(tmp_path: Path, table: Table) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.metadata\.json"):
        icebergexec.scan("/tmp/nowhere.metadata.json")
    (tmp_path / "v4.metadata.json").write_text('{"format-version": 4}')
    with pytest.raises(NotImplementedError, match="format version 4"):
        icebergexec.scan(tmp_path / "v4.metadata.json")
    (tmp_path / "bad.metadata.json").write_text("{")
    with pytest.raises(icebergexec.CorruptFileError, match=r"bad\.metadata\.json"):
        icebergexec.scan(tmp_path / "bad.metadata.json")
    with pytest.raises(icebergexec.InvalidArgumentError, match="it must be a pyiceberg Table"):
        icebergexec.scan(42)  # type: ignore[arg-type]
    data = Path(table.inspect.data_files()["file_path"][0].as_py().removeprefix("file://"))
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    with pytest.raises(icebergexec.CorruptFileError, match=data.name):
        list(icebergexec.scan(table))
    assert list(icebergexec.scan(table, row_filter="id > 20000"))  # the process and the engine live on


def test_requests_that_python_does_not_make(table: Table) -> None:
    engine = icebergexec.engine()
    location = table.metadata_location
    with pytest.raises(icebergexec.InvalidArgumentError, match="colums"):
        engine._scan({"metadata_location": location, "colums": ["id"]})
    with pytest.raises(icebergexec.InvalidArgumentError, match=r"filter mode .java."):
        engine._scan({"metadata_location": location, "filter_mode": "java"})
    deep: e.BooleanExpression = e.IsNull("id")
    for i in range(1200):
        deep = (e.And if i % 2 else e.Or)(deep, e.EqualTo("id", i))
    with pytest.raises(icebergexec.InvalidArgumentError, match="500"):
        icebergexec.scan(table, deep)
    with pytest.raises(icebergexec.InvalidArgumentError, match="filter"):
        engine._scan({"metadata_location": location, "filter": [{"op": "like", "ref": "s"}]})
    with pytest.raises(icebergexec.InvalidArgumentError, match="is-nan"):
        engine._scan(
            {"metadata_location": location, "filter": [{"op": "eq", "ref": "id", "type": "double", "value": "NaN"}]}
        )


def test_long_filters(table: Table) -> None:
    chain = functools.reduce(e.Or, [e.EqualTo("id", i) for i in range(0, 200_000, 2)])
    even = [i for i in ALIVE if i % 2 == 0]
    assert icebergexec.scan(table, chain).to_pyarrow().read_all()["id"].to_pylist() == even
    assert icebergexec.scan(table, e.In("id", range(0, 200_000, 2))).to_pyarrow().read_all()["id"].to_pylist() == even
    with icebergexec.enabled():
        assert table.scan(chain).count() == len(even)


def test_threads_that_share_a_stream_all_see_its_end(table: Table) -> None:
    for _ in range(20):
        stream = icebergexec.scan(table, selected_fields=("id",), batch_rows=2000)
        found: list[list[int]] = []

        def work(stream: icebergexec.Stream = stream, found: list[list[int]] = found) -> None:
            found.append([i for batch in stream for i in batch["id"].to_pylist()])

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 6  # none has raised
        assert sorted(itertools.chain(*found)) == ALIVE


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_streams_do_not_travel(take: Callable[[Any], object], table: Table) -> None:
    with (
        icebergexec.scan(table) as stream,
        pytest.raises(TypeError, match="a Stream cannot be pickled or copied; collect it, or open a scan in the other"),
    ):
        take(stream)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("id =", "column 1"),
        ("", "column 1"),
        ("id > 5 and", "column 11"),
        ("id > 5 s", "column 8"),
        ("(id = 1", "column 8"),
    ],
)
def test_filters_that_cannot_be_read(text: str, where: str, table: Table) -> None:
    with pytest.raises(icebergexec.InvalidArgumentError) as caught:
        icebergexec.scan(table, row_filter=text)
    assert str(caught.value) == (
        f"filter {text!r}: cannot be read from {where} on; write for example \"id > 5 and city = 'Oslo'\""
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda t: icebergexec.scan(t, selected_fields=None), "scan: selected_fields is None; it must be a sequence"),
        (lambda t: icebergexec.scan(t, selected_fields=5), "scan: selected_fields is 5; it must be a sequence"),
        (
            lambda t: icebergexec.scan(t, selected_fields=("id", 5)),
            "selected_fields is .'id', 5.; it must be a sequence",
        ),
        (lambda t: icebergexec.explain(None), r"explain: scan is a NoneType; it must be what table\.scan"),
        (lambda t: icebergexec.explain(t), r"explain: scan is a Table; it must be what table\.scan"),
        (lambda t: icebergexec.scan(t, row_filter=5), "filter is a int; it must be a pyiceberg expression or its text"),
    ],
)
def test_wrong_arguments(call: Callable[[Table], object], sentence: str, table: Table) -> None:
    with pytest.raises(icebergexec.InvalidArgumentError, match=sentence):
        call(table)


def test_what_needs_pyiceberg_or_pyarrow_says_so(table: Table) -> None:
    program = f"""
import sys
sys.modules["pyiceberg"] = sys.modules["pyarrow"] = None
import icebergexec
stream = icebergexec.scan({table.metadata_location!r})
for call in (lambda: icebergexec.scan({table.metadata_location!r}, row_filter="id = 1"), stream.to_pyarrow):
    try:
        call()
    except ImportError as failure:
        print(failure)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "filters need pyiceberg; run: pip install 'pyiceberg[pyarrow]'",
        "to_pyarrow() needs pyarrow; run: pip install pyarrow",
    ], done.stderr
