"""Random tables of appends and deletes of every kind, against a model that keeps rows in lists."""

from __future__ import annotations

import math
import struct
import uuid
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog

import icebergexec
from tests.generator import TableWriter

SCHEMA = pa.schema([("rid", pa.int64()), ("i", pa.int32()), ("s", pa.string()), ("d", pa.float64())])
VALUES: dict[str, list[Any]] = {
    "i": [None, -1, 0, 1, 2],
    "s": [None, "", "a", "b", "ab"],
    "d": [None, 0.0, -0.0, 1.5, math.nan, math.inf],
}


def key(value: Any) -> Any:
    """Equality of keys: null equals null, all NaNs are equal, the zeros differ."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    return value


@dataclass
class File:
    path: str
    sequence: int
    rows: list[dict[str, Any]]
    deleted: set[int] = field(default_factory=set)
    has_vector: bool = False


@dataclass
class Model:
    """The rows of each data file, and which positions are gone."""

    files: list[File] = field(default_factory=list)
    sequence: int = 0
    next_rid: int = 0

    def delete_equal(self, columns: list[str], keys: list[tuple[Any, ...]]) -> None:
        wanted = {tuple(key(value) for value in one) for one in keys}
        for file in self.files:
            if file.sequence < self.sequence:
                for position, row in enumerate(file.rows):
                    if tuple(key(row[column]) for column in columns) in wanted:
                        file.deleted.add(position)

    def alive(self) -> set[int]:
        return {
            row["rid"] for file in self.files for position, row in enumerate(file.rows) if position not in file.deleted
        }


append = st.tuples(
    st.just("append"),
    st.lists(st.tuples(*(st.sampled_from(values) for values in VALUES.values())), min_size=1, max_size=12),
)
columns = st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True)
equality = columns.flatmap(
    lambda names: st.tuples(
        st.just("equality"),
        st.just(names),
        st.lists(st.tuples(*(st.sampled_from(VALUES[name]) for name in names)), min_size=1, max_size=4),
    )
)
positions = st.tuples(
    st.just("positions"), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 11)), min_size=1, max_size=6)
)
operations = st.lists(st.one_of(append, equality, positions), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> SqlCatalog:
    folder = tmp_path_factory.mktemp("random")
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("db")
    return catalog


def apply(writer: TableWriter, model: Model, operation: tuple[Any, ...], format_version: int) -> None:
    model.sequence += 1
    match operation:
        case ("append", values):
            rows = [dict(zip(VALUES, row, strict=True), rid=model.next_rid + i) for i, row in enumerate(values)]
            model.next_rid += len(rows)
            file = writer.append(pa.Table.from_pylist(rows, schema=SCHEMA))
            model.files.append(File(file.file_path, model.sequence, rows))
        case ("equality", names, keys):
            rows = [dict(zip(names, one, strict=True)) for one in keys]
            writer.delete_equal(
                names, pa.Table.from_pylist(rows, schema=pa.schema([SCHEMA.field(name) for name in names]))
            )
            model.delete_equal(names, keys)
        case ("positions", pairs):
            chosen: dict[str, set[int]] = {}
            for number, position in pairs:
                if model.files:
                    file = model.files[number % len(model.files)]
                    # A data file has one deletion vector at most: its second one would have to replace the first.
                    if position < len(file.rows) and not (format_version == 3 and file.has_vector):
                        chosen.setdefault(file.path, set()).add(position)
            if not chosen:
                model.sequence -= 1
                return
            for file in model.files:
                file.deleted |= chosen.get(file.path, set())
                file.has_vector = file.has_vector or file.path in chosen
            delete = writer.delete_vector if format_version == 3 else writer.delete_positions
            delete({path: sorted(rows) for path, rows in chosen.items()})


@pytest.mark.parametrize("format_version", [2, 3])
@given(steps=operations)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_deletes(steps: list[tuple[Any, ...]], format_version: int, catalog: SqlCatalog) -> None:
    writer = TableWriter.create(catalog, f"db.t{uuid.uuid4().hex}", SCHEMA, format_version)
    model = Model()
    for step in steps:
        apply(writer, model, step, format_version)
    table = writer.table
    rows = icebergexec.scan(table, batch_rows=3).to_pyarrow().read_all()
    assert sorted(rows["rid"].to_pylist()) == sorted(model.alive())
    # Neither the columns nor the filter change which rows are deleted.
    assert sorted(
        icebergexec.scan(table, selected_fields=("rid",)).to_pyarrow().read_all()["rid"].to_pylist()
    ) == sorted(model.alive())
    filtered = icebergexec.scan(table, row_filter="i >= 0", selected_fields=("rid",)).to_pyarrow().read_all()
    alive = {row["rid"]: row for file in model.files for row in file.rows}
    assert sorted(filtered["rid"].to_pylist()) == sorted(
        rid for rid in model.alive() if (alive[rid]["i"] or 0) >= 0 and alive[rid]["i"] is not None
    )
    with icebergexec.enabled():
        assert sorted(table.scan().to_arrow()["rid"].to_pylist()) == sorted(model.alive())
        assert table.scan().count() == len(model.alive())
