"""Reading the 10 M-row Parquet file: whole, two columns, and with a filter that
selects few rows in runs or scattered. icebergexec reads it as the only data
file of a table; the others read the file itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import data, tables
from tests.bench.harness import Job

if TYPE_CHECKING:
    import duckdb as duckdb_module

Work = Callable[[], int | Iterator[int]]

#: name -> (columns or None for all, filter as (column, low, high) or None, rows that come out)
READS: dict[str, tuple[list[str] | None, tuple[str, int, int] | None, int | None]] = {
    "read 8 columns": (None, None, data.ROWS),
    "read 2 columns": (["id", "cat"], None, data.ROWS),
    "read 0.1 % in a run": (None, ("id", 4_000_000, 4_010_000), 10_000),
    "read 10 % in a run": (None, ("id", 4_000_000, 5_000_000), 1_000_000),
    "read 0.1 % scattered": (None, ("i32", 0, 1049), None),
    "read 10 % scattered": (None, ("i32", 0, 104_858), None),
}


def jobs() -> list[Job]:
    return [
        Job(
            name,
            engines={
                "icebergexec": lambda r=read: icebergexec(*r),
                "pyarrow": lambda r=read: pyarrow(*r),
                "duckdb": lambda r=read: duckdb(*r),
                "polars": lambda r=read: polars(*r),
                "datafusion": lambda r=read: datafusion(*r),
            },
            prepare=tables.plain,
            expect=expect,
        )
        for name, (columns, where, expect) in READS.items()
        for read in [(columns, where)]
    ]


def icebergexec(columns: list[str] | None, where: tuple[str, int, int] | None) -> Work:
    import icebergexec as iex

    engine = iex.Engine()
    location = tables.plain()
    text = f"{where[0]} >= {where[1]} and {where[0]} < {where[2]}" if where else None

    def work() -> Iterator[int]:
        options = {"row_filter": text} if text else {}
        with engine.scan(location, selected_fields=tuple(columns or ("*",)), **options) as stream:
            for batch in stream:
                yield batch.num_rows

    return work


def pyarrow(columns: list[str] | None, where: tuple[str, int, int] | None) -> Work:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    dataset = ds.dataset(tables.base_file(), format="parquet")
    expression = (pc.field(where[0]) >= where[1]) & (pc.field(where[0]) < where[2]) if where else None

    def work() -> Iterator[int]:
        for batch in dataset.to_batches(columns=columns, filter=expression, batch_readahead=2, fragment_readahead=1):
            yield batch.num_rows

    return work


def duckdb(columns: list[str] | None, where: tuple[str, int, int] | None) -> Work:
    import duckdb as engine

    return streamed(engine.connect(), sql(columns, where, f"read_parquet('{tables.base_file()}')"))


def streamed(connection: duckdb_module.DuckDBPyConnection, query: str) -> Work:
    """The batches of a DuckDB query as a relation streams them (a connection's own result would be held whole)."""

    def work() -> Iterator[int]:
        for batch in connection.sql(query).to_arrow_reader(122_880):
            yield batch.num_rows

    return work


def polars(columns: list[str] | None, where: tuple[str, int, int] | None) -> Work:
    import polars as pl

    def work() -> Iterator[int]:
        frame = pl.scan_parquet(tables.base_file())
        if where:
            frame = frame.filter((pl.col(where[0]) >= where[1]) & (pl.col(where[0]) < where[2]))
        if columns:
            frame = frame.select(columns)
        for batch in frame.collect_batches():
            yield batch.height

    return work


def datafusion(columns: list[str] | None, where: tuple[str, int, int] | None) -> Work:
    from datafusion import SessionContext

    context = SessionContext()
    context.register_parquet("base", str(tables.base_file()))

    def work() -> Iterator[int]:
        for batch in context.sql(sql(columns, where, "base")).execute_stream():
            yield batch.to_pyarrow().num_rows

    return work


def sql(columns: list[str] | None, where: tuple[str, int, int] | None, table: str | Path) -> str:
    condition = f" where {where[0]} >= {where[1]} and {where[0]} < {where[2]}" if where else ""
    return f"select {', '.join(columns) if columns else '*'} from {table}{condition}"
