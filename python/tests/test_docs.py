"""The examples of the documentation run and print what they promise."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa

from conftest import ROOT
from tests.generator import TableWriter


def test_first_minutes(catalog: Any) -> None:
    rows = pa.table({"id": pa.array(range(20), pa.int64()), "name": [f"n{i}" for i in range(20)], "more": [1.5] * 20})
    writer = TableWriter.create(catalog, "db.t", rows.schema)
    file = writer.append(rows)
    writer.append(rows.slice(0, 3))
    writer.delete_equal(["id"], pa.table({"id": [7]}))
    writer.delete_positions({file.file_path: [8]})
    script = ROOT / "docs" / "examples" / "first_minutes.py"
    command = [sys.executable, str(script), writer.table.metadata_location]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in (
        "  runs in         the engine, under enable()",
        "rows: 12",
        "a batch of 12",
        "[{'id': 6, 'name': 'n6'}, {'id': 9, 'name': 'n9'}, {'id': 10, 'name': 'n10'}]",
        "2 data files in 2 pieces",
        "rows by pieces: 21",
        "peak memory within the limit: True",
    ):
        assert line in done.stdout.splitlines(), done.stdout
