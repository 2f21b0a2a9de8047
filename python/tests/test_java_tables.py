"""Every read of the tables that Java wrote: through icebergexec.scan, and the unfiltered ones through pyiceberg."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import StaticTable

import icebergexec
from conftest import ROOT, load_case
from rendering import render_rows

TABLES = ROOT / "tests" / "tables"


def _cases() -> dict[str, dict[str, Any]]:
    with tarfile.open(TABLES / "fixtures.tar.gz") as archive:
        return {
            member.name.split("/")[-2]: json.load(archive.extractfile(member))  # type: ignore[arg-type]
            for member in archive
            if member.name.endswith("/case.json")
        }


CASES = _cases()


def tag(read: dict[str, Any]) -> str:
    return str(read["file"].removeprefix("expected").removesuffix(".json").removeprefix("_") or "full")


READS = [(name, tag(read)) for name, case in sorted(CASES.items()) for read in case["reads"]]


def expected_failures(runner: str) -> dict[tuple[str, str], str]:
    """Reads that are listed as not right for this runner, with the reason."""
    failures = {}
    for line in (TABLES / "expected_failures.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        names, reason = line.split("\t", 1)
        of_runner, case, read = names.split()
        if of_runner in (runner, "*"):
            for name, each in READS:
                if name == case and read in (each, "*"):
                    failures[name, each] = reason
    return failures


def select(name: str, wanted: str) -> dict[str, Any]:
    return next(read for read in CASES[name]["reads"] if tag(read) == wanted)


def check(runner: str, name: str, read: str, get: Any, folder: Path) -> None:
    """Compare what get() returns with the expected rows, and the outcome with the list of failures."""
    reason = expected_failures(runner).get((name, read))
    try:
        compare(get(), select(name, read), folder / name)
    except Exception as failure:
        if reason is None:
            raise
        pytest.xfail(f"{reason} ({str(failure)[:200]})")
    if reason is not None:
        pytest.fail(f"{name} {read} is listed in expected_failures.txt but comes out right now: take it off the list")


def compare(table: pa.Table, read: dict[str, Any], folder: Path) -> None:
    expected = json.loads((folder / read["file"]).read_text())
    rows = render_rows(table)
    if read.get("summary"):
        ids = sorted(int(row["rid"]) for row in rows)
        assert len(ids) == int(expected["count"])
        assert sum(ids) == int(expected["sum_rid"])
        assert ids == [i for first, last in expected["alive_rid_ranges"] for i in range(int(first), int(last) + 1)]
        return
    rows.sort(key=lambda row: int(row["rid"]))
    assert rows == expected
    for found, wanted in zip(rows, expected, strict=True):
        assert list(found) == list(wanted)  # the order of columns


@pytest.mark.parametrize(("name", "read"), READS, ids=map(" ".join, READS))
def test_scan(name: str, read: str, java_tables: Path, prefixes: dict[str, str]) -> None:
    wanted = select(name, read)

    def get() -> pa.Table:
        columns = wanted.get("select") or ["*"]
        if read == "lineage":
            columns = list(json.loads((java_tables / name / wanted["file"]).read_text())[0])
        stream = icebergexec.scan(
            CASES[name]["metadata_location"],
            BooleanExpression.model_validate(wanted["filter"]) if "filter" in wanted else None,
            columns,
            snapshot_id=wanted.get("snapshot_id"),
            path_prefixes=prefixes,
        )
        return stream.to_pyarrow().read_all()

    check("python", name, read, get, java_tables)


def _static_table(java_tables: Path, name: str) -> StaticTable:
    case = load_case(java_tables / name)
    moved = (
        case["metadata_location"]
        .removeprefix("file:")
        .removeprefix("//")
        .replace("/tmp/iceberg-fixtures", str(java_tables))
    )
    return StaticTable.from_metadata(moved)


UNFILTERED = [(name, read) for name, read in READS if "filter" not in select(name, read) and read != "lineage"]


@pytest.mark.parametrize("method", ["to_arrow", "to_arrow_batch_reader", "count"])
@pytest.mark.parametrize(("name", "read"), UNFILTERED, ids=map(" ".join, UNFILTERED))
def test_pyiceberg(name: str, read: str, method: str, java_tables: Path, prefixes: dict[str, str]) -> None:
    wanted = select(name, read)
    table = _static_table(java_tables, name)
    scan = table.scan(snapshot_id=wanted.get("snapshot_id"), selected_fields=tuple(wanted.get("select") or ["*"]))

    def get() -> pa.Table:
        with icebergexec.enabled(path_prefixes=prefixes):
            if method == "to_arrow_batch_reader":
                return scan.to_arrow_batch_reader().read_all()
            table = scan.to_arrow()
            if method == "count":
                assert scan.count() == table.num_rows
            return table

    check("pyiceberg", name, read, get, java_tables)
