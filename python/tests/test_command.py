"""The command line, explain() and the log."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import In
from pyiceberg.table import Table

import icebergexec
from icebergexec.__main__ import main
from tests.generator import TableWriter


@pytest.fixture
def table(catalog: Any) -> Table:
    rows = pa.table(
        {"id": pa.array(range(50), pa.int64()), "s": [f"value {i}" for i in range(50)], "l": [[i] for i in range(50)]}
    )
    writer = TableWriter.create(catalog, "db.t", rows.schema)
    writer.append(rows)
    writer.delete_equal(["id"], pa.table({"id": [3]}))
    return writer.table


def test_info(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", table.metadata_location]) == 0
    text = capsys.readouterr().out
    for part in (
        table.location(),
        "format version  2",
        "1  id  long",
        "3  l  list<long>",
        "unpartitioned",
        "append",
        "branch main",
    ):
        assert part in text


def test_scan_to_the_terminal(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", table.metadata_location, "-c", "id,s", "-f", "id > 1", "-n", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == ["id  s", "--  -------", "2   value 2", "4   value 4", "5   value 5"]
    assert main(["scan", table.metadata_location]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "the first 20 rows; --limit shows more, --output writes all"


@pytest.mark.parametrize("name", ["out.parquet", "out.arrow", "out.arrows"])
def test_scan_to_a_file(name: str, table: Table, tmp_path: Path) -> None:
    out = tmp_path / name
    assert main(["scan", table.metadata_location, "-o", str(out), "--memory-limit", "32MiB"]) == 0
    if name.endswith("parquet"):
        found = pq.read_table(out)
    elif name.endswith("arrow"):
        found = pa.ipc.open_file(out).read_all()
    else:
        found = pa.ipc.open_stream(out).read_all()
    assert found["id"].to_pylist() == [i for i in range(50) if i != 3]


def test_scan_to_a_pipe(table: Table) -> None:
    command = [sys.executable, "-m", "icebergexec", "scan", table.metadata_location, "-o", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert pa.ipc.open_stream(io.BytesIO(done.stdout)).read_all().num_rows == 49


def test_explain(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", table.metadata_location, "-f", "id > 1 and s is not null"]) == 0
    text = capsys.readouterr().out
    assert "2 terms" in text
    assert "the engine, under enable()" in text
    explanation = icebergexec.explain(table.scan(In("id", range(1000)), selected_fields=("s",), limit=5))
    for part in ("db.t", "columns", "1 term: ", "5 rows", "512 MiB (default)"):
        assert part in str(explanation)
    assert "<table>" in explanation._repr_html_()


def test_explain_says_why_not(table: Table) -> None:
    scan = table.scan()
    scan.table_metadata = scan.table_metadata.model_copy(update={"location": "gs://bucket/t"})
    assert "pyiceberg, because its files have the scheme gs" in str(icebergexec.explain(scan))


def test_doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for part in (
        "library",
        "pyiceberg       0.12",
        "DataScan.to_arrow",
        "memory-limit",
        "spill directory",
        "engine          opens",
    ):
        assert part in text
    monkeypatch.setenv("PYICEBERG_EXECUTION__SPILL_DIR", "/nowhere")
    assert main(["doctor"]) == 1
    assert "PROBLEM         configuration spill-dir: '/nowhere' (environment" in capsys.readouterr().out
    monkeypatch.delenv("PYICEBERG_EXECUTION__SPILL_DIR")
    monkeypatch.setenv("PYICEBERG_EXECUTION__THREADS", "none")
    assert main(["doctor"]) == 1
    assert "PROBLEM         configuration threads: 'none'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["info", "/nowhere.json"], "icebergexec: read /nowhere.json: No such file"),
        (["info", __file__], "icebergexec: read "),
        (["scan", "/nowhere.json"], "/nowhere.json: no such file"),
        (["explain", "/nowhere.json"], "icebergexec: read /nowhere.json: No such file"),
        (["info", "DEEP"], "nested too deeply"),
        (["explain", "DEEP"], "not the metadata of an Iceberg table"),
        (["info", "LIST"], "not the metadata of an Iceberg table"),
        (["info", "OTHER"], "not the metadata of an Iceberg table"),
        (["explain", "OTHER"], "not the metadata of an Iceberg table"),
        (["info", "ODD"], "not the metadata of an Iceberg table"),
        (["scan", "TABLE", "-f", "id ="], "filter 'id =': cannot be read from column 1 on; write for example"),
        (["explain", "TABLE", "-f", "id ="], "filter 'id =': cannot be read from column 1 on; write for example"),
        (["explain", "TABLE", "-c", "nothing"], "nothing"),
        (["explain", "TABLE", "--snapshot", "5"], "Snapshot not found: 5"),
        (["scan", "TABLE", "-o", "/nowhere/out.parquet"], "write /nowhere/out.parquet: No such file or directory"),
        (["scan", "TABLE", "-o", "/nowhere/out.arrow"], "write /nowhere/out.arrow: No such file or directory"),
        (["scan", "TABLE", "-o", "out.csv"], "write out.csv: the name must end with"),
    ],
)
def test_errors_are_one_sentence(
    arguments: list[str], sentence: str, table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"DEEP": "[" * 100_000, "LIST": "[1]", "OTHER": '{"a": 1}', "ODD": '{"format-version": 2, "schemas": 5}'}
    for name, text in texts.items():
        (tmp_path / f"{name}.metadata.json").write_text(text)
    places = {name: str(tmp_path / f"{name}.metadata.json") for name in texts} | {"TABLE": table.metadata_location}
    assert main([places.get(argument, argument) for argument in arguments]) == 1
    text = capsys.readouterr().err
    assert sentence in text
    assert len(text.splitlines()) == 1


def test_file_locations(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    path = table.metadata_location.removeprefix("file://")
    for prefix in ("", "file:", "file://", "file://localhost"):
        assert main(["info", prefix + path]) == 0
        assert "format version  2" in capsys.readouterr().out


def test_log(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="icebergexec"), icebergexec.enabled():
        table.scan().to_arrow()
    assert "scan of db.t: 49 rows in 1 batches" in caplog.text


def test_a_large_table_in_memory_is_a_warning(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    with icebergexec.enabled(materialization_warning_threshold="1KiB"):
        table.scan(limit=2).to_arrow()
        assert caplog.text == ""
        table.scan().to_arrow()
    assert "to_arrow_batch_reader() reads the same rows batch by batch" in caplog.text
