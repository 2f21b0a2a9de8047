"""Tables of the benchmarks, made once into the cache folder.

All have the same data file of 10 M rows and differ in their delete files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import StaticTable

from tests.bench import data
from tests.bench.harness import CACHE
from tests.generator import TableWriter

#: Keys of an equality-delete file; about half of them hit a row, 5 % of the rows.
KEYS = 1_000_000
POSITIONS = 1_000_000
POSITION_FILES = 4


@cache
def catalog() -> Catalog:
    CACHE.mkdir(parents=True, exist_ok=True)
    made = SqlCatalog("bench", uri=f"sqlite:///{CACHE}/catalog.db", warehouse=f"file://{CACHE}/warehouse")
    made.create_namespace_if_not_exists("bench")
    return made


def _made(name: str, make: Callable[[TableWriter], None]) -> str:
    """The metadata location of a table, which is made if it does not exist."""
    identifier = f"bench.{name}"
    known = CACHE / f"{name}.json"  # written last: a table whose making was interrupted is made anew
    if not known.exists():
        print(f"making table {name} ...", flush=True)
        if catalog().table_exists(identifier):
            catalog().drop_table(identifier)
        writer = TableWriter.create(catalog(), identifier, data.SCHEMA)
        make(writer)
        known.write_text(json.dumps(catalog().load_table(identifier).metadata_location))
    return str(json.loads(known.read_text()))


def plain() -> str:
    """One data file of 10 M rows in 10 row groups, no deletes."""
    return _made("plain", lambda w: _append(w))


def _append(writer: TableWriter) -> None:
    writer.append(data.base_rows(), row_group_size=data.ROW_GROUP, write_page_index=True)


@cache
def _base() -> DataFile:
    (task,) = StaticTable.from_metadata(plain()).scan().plan_files()
    return task.file


def base_file() -> Path:
    """The data file that all tables share."""
    return Path(_base().file_path.removeprefix("file://"))


def equality_deletes(*columns: str) -> str:
    """1 M keys on the columns, half of them of a row of the table."""

    def make(writer: TableWriter) -> None:
        writer.commit(data=[_base()])
        writer.delete_equal(columns, keys(*columns))

    return _made(f"eq_{'_'.join(columns)}", make)


def both_equality_deletes() -> str:
    """The delete file on id and the one on (k, id)."""

    def make(writer: TableWriter) -> None:
        writer.commit(data=[_base()])
        writer.delete_equal(["id"], keys("id"))
        writer.delete_equal(["k", "id"], keys("k", "id"))

    return _made("eq_both", make)


def position_deletes() -> str:
    """1 M scattered positions in 4 files."""

    def make(writer: TableWriter) -> None:
        writer.commit(data=[_base()])
        for part in positions():
            writer.delete_positions({_base().file_path: part.tolist()})

    return _made("positions", make)


def keys(*columns: str) -> pa.Table:
    """The 1 M keys on the columns in random order: every second one has an id that no row has."""
    rng = np.random.default_rng(data.SEED + len(columns))
    rows = np.sort(rng.choice(data.ROWS, KEYS, replace=False))
    found = pq.read_table(base_file(), columns=list(columns)).take(pa.array(rows))
    ids = found.column("id").to_numpy().copy()
    ids[::2] += data.ROWS
    table = found.set_column(found.column_names.index("id"), "id", pa.array(ids))
    return table.take(pa.array(rng.permutation(KEYS))).select(list(columns))


def positions() -> list[np.ndarray]:
    """The positions of each of the 4 files, ascending."""
    rng = np.random.default_rng(data.SEED)
    chosen = rng.choice(data.ROWS, POSITIONS, replace=False)
    return [np.sort(part) for part in np.array_split(chosen, POSITION_FILES)]


def delete_files(location: str) -> list[Path]:
    """The paths of a table's delete files, for engines that do not read Iceberg metadata."""
    table = StaticTable.from_metadata(location)
    files = table.inspect.delete_files().to_pylist()
    return [Path(file["file_path"].removeprefix("file://")) for file in files]
