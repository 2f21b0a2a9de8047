"""How the package behaves in a process: signals, forks, and a thousand scans that leave nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

import icebergexec
from tests.generator import TableWriter


def small_table(catalog: Any) -> Table:
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "s": [f"value {i}" for i in range(100)]})
    writer = TableWriter.create(catalog, "db.small", rows.schema)
    file = writer.append(rows)
    writer.delete_equal(["id"], pa.table({"id": [5]}))
    writer.delete_positions({file.file_path: [7]})
    return writer.table


def endless_table(catalog: Any) -> Table:
    """A scan of it for a value within its range that it does not have takes long: one file, listed very often."""
    rows = pa.table({"s": pa.array([f"value {i}" for i in range(200_000)])})
    writer = TableWriter.create(
        catalog, "db.endless", rows.schema, properties={"write.metadata.metrics.default": "none"}
    )
    file = writer.data_file(rows)
    writer.commit(data=[file] * 5000)
    return writer.table


@pytest.mark.parametrize("way", ["iterate", "read_all", "to_arrow", "count"])
def test_ctrl_c(way: str, catalog: Any) -> None:
    location = endless_table(catalog).metadata_location
    program = f"""
import sys, time
import pyarrow
import icebergexec
from pyiceberg.table import StaticTable
table = StaticTable.from_metadata({location!r})
icebergexec.enable(memory_limit="64MiB")
next(iter(table.scan(limit=1).to_arrow_batch_reader()))
ways = {{
    "iterate": lambda: list(icebergexec.scan(table, row_filter="s = 'value 17x'")),
    "read_all": lambda: table.scan("s = 'value 17x'").to_arrow_batch_reader().read_all(),
    "to_arrow": lambda: table.scan("s = 'value 17x'").to_arrow(),
    "count": lambda: table.scan("s = 'value 17x'").count(),
}}
print("ready", flush=True)
try:
    ways[{way!r}]()
except KeyboardInterrupt:
    print(time.time(), flush=True)
print(next(iter(table.scan(limit=1).to_arrow_batch_reader())).num_rows)  # the engine works on
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(1)
        assert child.poll() is None, "the scan ended too early for this test"
        sent = time.time()
        child.send_signal(signal.SIGINT)
        caught = float(child.stdout.readline())
        assert caught - sent < 0.2
        assert child.stdout.readline() == "1\n"
        assert child.wait(30) == 0
    finally:
        child.kill()


def forked(work: Any) -> str:
    """What work returns, or the exception it raises, in a forked child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except BaseException as failure:
            text = f"{type(failure).__name__}: {failure}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    deadline = time.time() + 20
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.time() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.01)
    with os.fdopen(read) as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_gets_an_error(catalog: Any) -> None:
    table = small_table(catalog)
    stream = icebergexec.scan(table, batch_rows=1)
    next(iter(stream))
    for work in (
        lambda: icebergexec.scan(table),
        lambda: list(stream),
        lambda: icebergexec.Engine(threads=1),
        stream.close,
    ):
        start = time.time()
        answer = forked(work)
        assert "spawn" in answer or answer == "None", answer  # close() has nothing to do there
        assert time.time() - start < 5
    assert sum(batch.num_rows for batch in stream) == 97  # the parent reads on


def test_a_process_that_only_imported_can_fork(catalog: Any) -> None:
    location = small_table(catalog).metadata_location
    program = f"""
import os, icebergexec
icebergexec.config()
child = os.fork()
if child == 0:
    print(icebergexec.scan({location!r}).to_pyarrow().read_all().num_rows, flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["98", "0"], done.stderr


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def footprint() -> dict[str, int]:
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads of Python": threading.active_count(),
        "pyarrow bytes": pa.total_allocated_bytes(),
        "open streams": icebergexec.engine().stats()["open_streams"],
        "exported bytes": icebergexec.engine().stats()["exported_bytes"],
        "memory used": icebergexec.engine().stats()["memory_used"],
    }


def test_a_thousand_scans_leave_nothing(catalog: Any, tmp_path: Path) -> None:
    table = small_table(catalog)
    spill = tmp_path / "spill"
    spill.mkdir()
    icebergexec.enable(spill_dir=spill)

    def cycle(i: int) -> None:
        match i % 5:
            case 0:
                assert icebergexec.scan(table).to_pyarrow().read_all().num_rows == 98
            case 1:
                icebergexec.scan(table, batch_rows=3).to_pyarrow().read_next_batch()
            case 2:
                with table.scan().to_arrow_batch_reader() as reader:
                    reader.read_next_batch()
            case 3:
                assert pa.table(icebergexec.scan(table)).num_rows == 98
            case 4:
                with pytest.raises(icebergexec.InvalidArgumentError):
                    icebergexec.scan(table, row_filter="nothing = 1")
                with icebergexec.Engine(memory_limit="16MiB") as engine:
                    next(iter(engine.scan(table)))

    for i in range(200):
        cycle(i)
    before, memory = footprint(), resident()
    os_threads = len(os.listdir("/proc/self/task"))
    for i in range(1000):
        cycle(i)
    assert footprint() == before
    assert list(spill.iterdir()) == []
    assert resident() - memory < 16 << 20
    assert len(os.listdir("/proc/self/task")) <= os_threads + 4


def test_ctrl_c_while_another_library_reads(catalog: Any) -> None:
    """polars reads in C, so that the interrupt is seen when the capsule is dropped or later; it must not get lost."""
    location = endless_table(catalog).metadata_location
    program = f"""
import os, signal, threading, time
import polars
import icebergexec
polars.DataFrame(icebergexec.scan({location!r}, limit=1))
for i in range(3):
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        polars.DataFrame(icebergexec.scan({location!r}, limit=4_000_000))
        while True:
            pass
    except KeyboardInterrupt:
        print("caught", flush=True)
icebergexec.scan({location!r}).__arrow_c_stream__()  # dropped at once
deadline = time.time() + 20  # its work ends in the background
while icebergexec.engine().stats()["open_streams"] and time.time() < deadline:
    time.sleep(0.01)
print(icebergexec.engine().stats()["open_streams"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["caught"] * 3 + ["0"], "")


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_ends_in_silence(catalog: Any) -> None:
    location = small_table(catalog).metadata_location
    program = f"""
import os, sys, icebergexec
engine = icebergexec.Engine()
streams = [icebergexec.scan({location!r}, batch_rows=1), engine.scan({location!r}, batch_rows=1)]
batches = [next(iter(stream)) for stream in streams]
readers = [icebergexec.scan({location!r}, batch_rows=1).to_pyarrow(), icebergexec.scan({location!r}).__arrow_c_stream__()]
child = os.fork()
if child == 0:
    sys.exit(0)
print(os.waitpid(child, 0)[1], sum(batch.num_rows for batch in streams[0]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout.split(), done.stderr) == (["0", "97"], "")
