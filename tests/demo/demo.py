"""What icebergexec is for, in half a minute: tables full of deletes, read through unchanged pyiceberg code.

    make demo

Makes two small tables in a temporary folder, with a SQLite catalog: one as a
change-data-capture writer leaves it (format version 2: equality deletes and
position deletes), one of format version 3 (deletion vectors and equality
deletes). Then reads both, first with pyiceberg alone, then after enable().
"""

from __future__ import annotations

import logging
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import In
from pyiceberg.table import Table

import icebergexec
from tests.generator import TableWriter

FILES = 8
ROWS_PER_FILE = 100_000
MEMORY_LIMIT = "64MiB"

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("city", pa.string()), ("amount", pa.decimal128(9, 2))])
CITIES = ["Lisbon", "Oslo", "Quito", "Hanoi", "Perth"]


def main() -> None:
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)
    title("icebergexec " + icebergexec.__version__)
    with tempfile.TemporaryDirectory(prefix="icebergexec-demo-") as folder:
        catalog = SqlCatalog("demo", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
        catalog.create_namespace("shop")
        for make in (change_data_capture, deletion_vectors):
            show(*make(catalog))
    print(
        "Both answers equal a row-by-row model of the deletes. What changed in the code that reads: one line, enable().\n"
    )


# -- the tables


def rows(first: int, count: int = ROWS_PER_FILE, note: str = "") -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        [
            pa.array(ids, pa.int64()),
            pa.array([f"customer {i}{note}" for i in ids]),
            pa.array([CITIES[i % len(CITIES)] for i in ids]),
            pa.array([i % 10_000 for i in ids]).cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2)),
        ],
        schema=ROWS,
    )


def change_data_capture(catalog: SqlCatalog) -> tuple[str, Table, int, dict[int, str]]:
    """Inserts, then updates the way Flink writes them: delete the old row by its key, insert the new one."""
    writer = TableWriter.create(catalog, "shop.customers", ROWS, format_version=2)
    truth = {}
    files = [writer.append(rows(i * ROWS_PER_FILE), row_group_size=20_000) for i in range(FILES)]
    truth.update((i, f"customer {i}") for i in range(FILES * ROWS_PER_FILE))

    updated = range(30_000)
    delete = writer.equality_delete_file(["id"], pa.table({"id": list(updated)}))
    writer.commit(data=[writer.data_file(rows(0, len(updated), " (moved)"))], deletes=[delete])
    truth.update((i, f"customer {i} (moved)") for i in updated)

    by_city_and_id = pa.table({"city": ["Oslo"] * 1000, "id": [100_001 + 5 * i for i in range(1000)]})
    writer.delete_equal(["city", "id"], by_city_and_id)
    for i in by_city_and_id["id"].to_pylist():
        truth.pop(i)

    positions = {files[2].file_path: list(range(0, ROWS_PER_FILE, 10)), files[5].file_path: [0, 1, 2]}
    writer.delete_positions(positions)
    for file, deleted in positions.items():
        first = [f.file_path for f in files].index(file) * ROWS_PER_FILE
        for position in deleted:
            truth.pop(first + position, None)
    stored = FILES * ROWS_PER_FILE + len(updated)
    return "A table as a CDC writer leaves it (format version 2)", writer.table, stored, truth


def deletion_vectors(catalog: SqlCatalog) -> tuple[str, Table, int, dict[int, str]]:
    """Deletion vectors for two files, then a delete by name."""
    writer = TableWriter.create(catalog, "shop.orders", ROWS, format_version=3)
    files = [writer.append(rows(i * ROWS_PER_FILE), row_group_size=20_000) for i in range(FILES // 2)]
    truth = {i: f"customer {i}" for i in range(FILES // 2 * ROWS_PER_FILE)}
    writer.delete_vector({files[0].file_path: range(0, ROWS_PER_FILE, 2), files[3].file_path: [7]})
    for i in (*range(0, ROWS_PER_FILE, 2), 3 * ROWS_PER_FILE + 7):
        truth.pop(i)
    names = [f"customer {i}" for i in range(150_000, 160_000)]
    writer.delete_equal(["name"], pa.table({"name": names}))
    for i in range(150_000, 160_000):
        truth.pop(i)
    return "Deletion vectors (format version 3)", writer.table, FILES // 2 * ROWS_PER_FILE, truth


# -- reading them


def read(table: Table) -> pa.Table:
    """What users have in their programs today."""
    return table.scan().to_arrow()


def show(headline: str, table: Table, stored: int, truth: dict[int, str]) -> None:
    title(headline)
    files = table.inspect.files().to_pylist()
    kinds = {0: "data files", 1: "position-delete files", 2: "equality-delete files"}
    if table.format_version == 3:
        kinds[1] = "deletion vectors"
    counts = {kind: sum(f["content"] == content for f in files) for content, kind in kinds.items()}
    line("table", ".".join(table.name()))
    line("files", ", ".join(f"{count} {kind if count > 1 else kind[:-1]}" for kind, count in counts.items() if count))
    line("rows before the deletes", f"{stored:,}")

    print("\n  pyiceberg alone: table.scan().to_arrow()")
    try:
        line("rows", f"{read(table).num_rows:,}")
    except Exception as failure:
        line("fails", f"{type(failure).__name__}: {failure}")

    print(f"\n  after icebergexec.enable(memory_limit={MEMORY_LIMIT!r}): the same call")
    icebergexec.enable(memory_limit=MEMORY_LIMIT)
    try:
        whole = timed(lambda: read(table))
        read(table)  # opens the engine, so that the times below are those of scans
        first = timed(lambda: next(iter(table.scan().to_arrow_batch_reader())))
        with watched() as memory:
            streamed = timed(lambda: sum(batch.num_rows for batch in table.scan().to_arrow_batch_reader()))
        line("rows after the deletes", f"{whole.result.num_rows:,}")
        line("time", f"{whole.seconds * 1000:.0f} ms for all rows")
        line("first batch", f"after {first.seconds * 1000:.0f} ms, in a run of its own with to_arrow_batch_reader()")
        line(
            "memory, streaming",
            f"at most {memory.engine / 2**20:.0f} MiB in the engine; the process grew by {memory.grown / 2**20:.0f} MiB",
        )
        check(whole.result, truth)
        assert streamed.result == whole.result.num_rows == table.scan().count()
        sample(table, truth)
    finally:
        icebergexec.disable()


def check(table: pa.Table, truth: dict[int, str]) -> None:
    found = dict(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))
    assert table.num_rows == len(found) == len(truth), "rows are missing, doubled or left over"
    assert found == truth, "rows differ from the model"
    line("checked", "every row, against a model of the deletes")


def sample(table: Table, truth: dict[int, str]) -> None:
    wanted = [0, 1, 2, 3, 100_001, 100_002]
    paths = table.inspect.data_files()["file_path"].to_pylist()
    stored = pa.concat_tables(
        pq.read_table(path.removeprefix("file://"), filters=[("id", "in", wanted)]) for path in paths
    )
    show_rows("stored, whatever the deletes say", stored)
    few = table.scan(row_filter=In("id", wanted)).to_arrow()
    show_rows(f"after the deletes: table.scan(In('id', {wanted})).to_arrow()", few)
    print()
    assert sorted(few["id"].to_pylist()) == [i for i in wanted if i in truth]


def show_rows(headline: str, rows: pa.Table) -> None:
    print(f"\n  {headline}")
    widths = {"id": 10, "name": 26, "city": 10, "amount": 8}
    print("    " + "".join(f"{name:<{width}}" for name, width in widths.items()).rstrip())
    for row in rows.sort_by([("id", "ascending"), ("name", "ascending")]).to_pylist():
        print("    " + "".join(f"{row[name]!s:<{width}}" for name, width in widths.items()).rstrip())


# -- measuring and printing


class Timed:
    def __init__(self, result: Any, seconds: float) -> None:
        self.result = result
        self.seconds = seconds


def timed(work: Callable[[], Any]) -> Timed:
    start = time.perf_counter()
    result = work()
    return Timed(result, time.perf_counter() - start)


class Memory:
    engine = 0
    grown = 0


@contextmanager
def watched() -> Iterator[Memory]:
    """How much memory the process takes on meanwhile, sampled, and the engine's own account of its peak."""
    memory, done, idle = Memory(), threading.Event(), resident()

    def watch() -> None:
        while not done.wait(0.005):
            memory.grown = max(memory.grown, resident() - idle)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield memory
    finally:
        done.set()
        watcher.join()
        memory.engine = icebergexec.engine().stats()["memory_peak"]


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}")


def line(name: str, value: str) -> None:
    print(f"    {name:<26}{value}")


if __name__ == "__main__":
    main()
