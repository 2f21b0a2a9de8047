"""Shared by the tests of the Python package."""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # tests.generator

import icebergexec  # noqa: E402


@pytest.fixture(autouse=True)
def _pristine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No configuration file of the user, and nothing enabled before or after a test."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp()))
    monkeypatch.delenv("PYICEBERG_HOME", raising=False)
    yield
    icebergexec.disable()


@pytest.fixture(scope="session")
def java_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the tables written by Java, one folder a table."""
    target = tmp_path_factory.mktemp("java")
    with tarfile.open(ROOT / "tests" / "tables" / "fixtures.tar.gz") as archive:
        archive.extractall(target)
    return target / "iceberg-fixtures"


@pytest.fixture(scope="session")
def prefixes(java_tables: Path) -> dict[str, str]:
    """Where the paths in the metadata of the Java-written tables are now."""
    spellings = ("", "file:", "file://")
    return {f"{spelling}/tmp/iceberg-fixtures": str(java_tables) for spelling in spellings}


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("db")
    return catalog


def load_case(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "case.json").read_text())
    return document
