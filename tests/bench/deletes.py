"""Reading the 10 M-row table with its deletes applied, as a stream of batches.

The other engines know no Iceberg deletes at this speed, so they get the same
work as a query: an anti-join with the delete file's rows that treats nulls as
equal, or a comparison of row numbers. They need not keep the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.bench import data, tables
from tests.bench.harness import Job
from tests.bench.parquet import Work, streamed

#: name -> (table, key columns of each equality-delete file)
EQUALITY: dict[str, tuple[Callable[[], str], list[list[str]]]] = {
    "equality deletes on id": (lambda: tables.equality_deletes("id"), [["id"]]),
    "equality deletes on (k, id)": (lambda: tables.equality_deletes("k", "id"), [["k", "id"]]),
    "both equality-delete files": (tables.both_equality_deletes, [["id"], ["k", "id"]]),
}


def jobs() -> list[Job]:
    made = [
        Job(
            name,
            engines={
                "icebergexec": lambda t=table: icebergexec(t()),
                "duckdb": lambda t=table, k=keys: duckdb(t(), k),
                "polars": lambda t=table, k=keys: polars(t(), k),
                "datafusion": lambda t=table, k=keys: datafusion(t(), k),
            },
            prepare=lambda t=table: _ready(t),
        )
        for name, (table, keys) in EQUALITY.items()
    ]
    made.append(
        Job(
            "1 M positions in 4 files",
            engines={
                "icebergexec": lambda: icebergexec(tables.position_deletes()),
                "pyiceberg": pyiceberg_positions,
                "duckdb": duckdb_positions,
                "polars": polars_positions,
            },
            prepare=lambda: _ready(tables.position_deletes),
            expect=data.ROWS - tables.POSITIONS,
        )
    )
    return made


def _ready(table: Callable[[], str]) -> None:
    table()


def icebergexec(location: str) -> Work:
    import icebergexec as iex

    engine = iex.Engine()

    def work() -> Iterator[int]:
        with engine.scan(location) as stream:
            for batch in stream:
                yield batch.num_rows

    return work


def _condition(columns: list[str], equals: str) -> str:
    return " and ".join(f"(t.{c} {equals} e.{c})" for c in columns)


def duckdb(location: str, keys: list[list[str]]) -> Work:
    import duckdb as engine

    query = f"select * from read_parquet('{tables.base_file()}')"
    for path, columns in _key_files(location, keys):
        condition = _condition(columns, "is not distinct from")
        query = f"select t.* from ({query}) t anti join read_parquet('{path}') e on {condition}"
    return streamed(engine.connect(), query)


def polars(location: str, keys: list[list[str]]) -> Work:
    import polars as pl

    files = _key_files(location, keys)

    def work() -> Iterator[int]:
        frame = pl.scan_parquet(tables.base_file())
        for path, columns in files:
            frame = frame.join(pl.scan_parquet(path), on=columns, how="anti", nulls_equal=True)
        for batch in frame.collect_batches():
            yield batch.height

    return work


def datafusion(location: str, keys: list[list[str]]) -> Work:
    from datafusion import SessionContext

    context = SessionContext()
    context.register_parquet("t0", str(tables.base_file()))
    query = "select t.* from t0 t"
    for n, (path, columns) in enumerate(_key_files(location, keys)):
        context.register_parquet(f"e{n}", str(path))
        condition = _condition(columns, "is not distinct from")
        query = f"select t.* from ({query}) t left anti join e{n} e on {condition}"

    def work() -> Iterator[int]:
        for batch in context.sql(query).execute_stream():
            yield batch.to_pyarrow().num_rows

    return work


def _key_files(location: str, keys: list[list[str]]) -> list[tuple[object, list[str]]]:
    """The delete files with their key columns, found by the columns they have."""
    import pyarrow.parquet as pq

    found = {tuple(pq.read_schema(path).names): path for path in tables.delete_files(location)}
    return [(found[tuple(columns)], columns) for columns in keys]


def pyiceberg_positions() -> Work:
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(tables.position_deletes())

    def work() -> Iterator[int]:
        for batch in table.scan().to_arrow_batch_reader():
            yield batch.num_rows

    return work


def duckdb_positions() -> Work:
    import duckdb as engine

    files = [str(path) for path in tables.delete_files(tables.position_deletes())]
    query = (
        f"select t.* exclude (file_row_number) from read_parquet('{tables.base_file()}', file_row_number=true) t "
        f"anti join read_parquet({files}) e on t.file_row_number = e.pos"
    )
    return streamed(engine.connect(), query)


def polars_positions() -> Work:
    import polars as pl

    files = [str(path) for path in tables.delete_files(tables.position_deletes())]

    def work() -> Iterator[int]:
        positions = pl.scan_parquet(files).select(pl.col("pos").cast(pl.UInt32))
        frame = pl.scan_parquet(tables.base_file(), row_index_name="pos").join(positions, on="pos", how="anti")
        for batch in frame.collect_batches():
            yield batch.height

    return work
