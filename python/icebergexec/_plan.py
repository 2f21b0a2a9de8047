"""Plans: which data files a scan reads, and pieces of it that run elsewhere.

    plan(table, filter) --iterate---> Task, one a data file, while manifests are read
                        --to_arrow()> the same as a table
                        --splits(n)-> Split --pickle, to_json()--> another process --execute()--> Stream

The columns are those of "Plan" in the engine's requests, the last of them the
task as JSON, which only the engine reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icebergexec import _config, _scan
from icebergexec._engine import Engine, Raw, shared
from icebergexec._stream import Stream
from icebergexec.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

    from icebergexec._scan import Filter, Source

# What a request for a plan and one for a scan have in common.
_COMMON = ("metadata_location", "metadata", "snapshot_id", "ref", "filter", "case_sensitive")


def plan(
    table: Source,
    row_filter: Filter | None = None,
    *,
    snapshot_id: int | None = None,
    ref: str | None = None,
    from_snapshot_id: int | None = None,
    case_sensitive: bool = True,
    memory_limit: int | str | None = None,
    path_prefixes: Mapping[str, str] | None = None,
) -> Plan:
    """The data files that a scan of a table would read, each with its deletes.

    Args:
        table: As for scan().
        row_filter: As for scan(): files without a matching row are left out.
        snapshot_id: The snapshot to plan; the current one by default.
        ref: The branch or tag to plan instead.
        from_snapshot_id: Makes the plan incremental: only files that were appended after this ancestor of the snapshot,
            without deletes.
        case_sensitive: Whether column names must match in case.
        memory_limit: Caps the planning inside the engine's limit.
        path_prefixes: Location prefixes to open elsewhere, instead of those of the configuration.
    """
    request = _scan.request(
        table,
        row_filter,
        snapshot_id=snapshot_id,
        ref=ref,
        case_sensitive=case_sensitive,
        memory_limit=memory_limit,
        path_prefixes=path_prefixes,
    )
    for name in ("columns", "limit", "batch_rows", "large_types"):
        del request[name]
    request["from_snapshot_id"] = from_snapshot_id
    return Plan(shared(_config.current()), request)


@dataclass(frozen=True)
class Task:
    """One data file to read, with its deletes."""

    path: str
    format: str
    record_count: int | None
    file_size_in_bytes: int
    spec_id: int
    partition: dict[str, Any]
    data_sequence_number: int
    position_delete_files: int
    equality_delete_files: int
    delete_paths: tuple[str, ...]
    read_size_in_bytes: int
    row_count: int | None
    """How many rows a scan returns of the file, where the plan alone tells."""
    task: str
    """The task as the engine takes it, JSON."""


class Plan:
    """Tasks in the order of a scan. Each use plans anew, so that nothing is held in between."""

    def __init__(self, engine: Engine, request: dict[str, Any]) -> None:
        self._engine = engine
        self._request = request
        self._totals: tuple[int, int, int | None] | None = None

    def stream(self) -> Stream:
        """The plan as record batches, one row a data file, while manifests are read."""
        return self._engine._plan(self._request)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.stream().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The plan as a table, one row a data file."""
        with self.stream() as stream:
            return stream.to_pyarrow().read_all()

    def __iter__(self) -> Iterator[Task]:
        with self.stream() as stream:
            for batch in stream:
                for row in batch.to_pylist():
                    row["partition"] = json.loads(row["partition"])
                    row["delete_paths"] = tuple(row["delete_paths"])
                    yield Task(**row)

    def __len__(self) -> int:
        """The number of data files."""
        return self._count()[0]

    def __bool__(self) -> bool:
        return len(self) > 0

    @property
    def read_size_in_bytes(self) -> int:
        """The size of all data files and of their deletes."""
        return self._count()[1]

    @property
    def row_count(self) -> int | None:
        """The rows of the scan, if the plan alone tells; else None."""
        return self._count()[2]

    def _count(self) -> tuple[int, int, int | None]:
        """Files, bytes and rows, in one pass that holds nothing."""
        if self._totals is None:
            import pyarrow.compute as pc

            files, size, rows = 0, 0, 0
            known = True
            with self.stream() as stream:
                for batch in stream:
                    files += batch.num_rows
                    size += pc.sum(batch["read_size_in_bytes"]).as_py() or 0
                    rows += pc.sum(batch["row_count"]).as_py() or 0
                    known = known and batch["row_count"].null_count == 0
            self._totals = (files, size, rows if known else None)
        return self._totals

    def splits(self, n: int) -> list[Split]:
        """At most n pieces of about the same number of bytes to read, deletes counted.

        No piece is empty, and none exceeds its share by more than one file. Their rows, one piece after the other, are
        those of the scan in its order.
        """
        if n < 1:
            raise InvalidArgumentError(f"splits: n is {n}; it must be at least 1")
        with self.stream() as stream:
            table = stream.to_pyarrow().read_all().select(["read_size_in_bytes", "task"])
        source = {name: _json(value) for name in _COMMON if (value := self._request.get(name)) is not None}
        sizes = table["read_size_in_bytes"].to_pylist()
        runs: list[tuple[int, list[int]]] = []
        total, before = sum(sizes), 0
        for i, size in enumerate(sizes):
            # A file belongs to the piece that its middle falls into.
            piece = min((2 * before + size) * n // (2 * total), n - 1) if total else 0
            if not runs or runs[-1][0] != piece:
                runs.append((piece, []))
            runs[-1][1].append(i)
            before += size
        return [
            Split(
                source=source,
                tasks=tuple(table["task"][run[0] : run[-1] + 1].to_pylist()),
                read_size_in_bytes=sum(sizes[run[0] : run[-1] + 1]),
            )
            for _, run in runs
        ]

    def __repr__(self) -> str:
        return f"<icebergexec.Plan of {self._request.get('metadata_location') or 'a table'}>"


def _json(value: Any) -> str:
    return value.text if isinstance(value, Raw) else json.dumps(value)


@dataclass(frozen=True)
class Split:
    """A piece of a plan. It holds all that another process needs, beside access to the files: pickle it, or to_json()."""

    source: Mapping[str, str]
    """Members of the request, as JSON: the table, its snapshot and the filter."""
    tasks: tuple[str, ...]
    read_size_in_bytes: int

    def to_json(self) -> str:
        """The split as text: a request for a scan, as the C interface takes it, too."""
        members = {**self.source, "tasks": f"[{','.join(self.tasks)}]"}
        return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items()) + "}"

    @classmethod
    def from_json(cls, text: str) -> Split:
        """The split that to_json() wrote."""
        try:
            members = json.loads(text)
            tasks = members.pop("tasks")
            size = sum(_read_size(file) for task in tasks for file in (task["data"], *task.get("deletes", ())))
        except (ValueError, TypeError, KeyError, AttributeError) as cause:
            raise InvalidArgumentError(f"from_json: this is not the text of a Split: {cause}") from None
        source = {name: json.dumps(value) for name, value in members.items()}
        return cls(source, tuple(json.dumps(task) for task in tasks), size)

    def __len__(self) -> int:
        """The number of data files."""
        return len(self.tasks)

    def __repr__(self) -> str:
        return f"<icebergexec.Split of {len(self)} data files, {self.read_size_in_bytes:,} bytes>"


def _read_size(file: dict[str, Any]) -> int:
    """The bytes that are read of a file at most: of a deletion vector, its blob."""
    return int(file.get("content_size_in_bytes") or file["file_size_in_bytes"])


def execute(
    split: Split,
    selected_fields: Sequence[str] = ("*",),
    *,
    memory_limit: int | str | None = None,
    path_prefixes: Mapping[str, str] | None = None,
    batch_rows: int | None = None,
    large_types: bool = False,
) -> Stream:
    """The rows of a piece of a plan, in file order. Arguments are those of scan()."""
    if not isinstance(split, Split):
        raise InvalidArgumentError(f"execute: split is a {type(split).__name__}; it must be a Split of Plan.splits()")
    columns = _scan.column_names("execute", selected_fields)
    arguments = _config.parse_arguments({"memory_limit": memory_limit, "path_prefixes": path_prefixes})
    return shared(_config.current())._scan(
        {
            **{name: Raw(text) for name, text in split.source.items()},
            "tasks": Raw(f"[{','.join(split.tasks)}]"),
            "columns": columns,
            "batch_rows": batch_rows,
            "large_types": large_types,
            **{name.replace("-", "_"): setting.value for name, setting in arguments.items()},
        }
    )
