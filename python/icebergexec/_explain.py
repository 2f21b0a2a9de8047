"""explain(): what a scan reads, and where it runs."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from icebergexec import _config
from icebergexec._sizes import format_size
from icebergexec.errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from pyiceberg.table import DataScan


class Explanation:
    """Lines of name and value; text, or a table in a notebook."""

    def __init__(self, title: str, lines: list[tuple[str, str]]) -> None:
        self.title = title
        self.lines = lines

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        return "\n".join([self.title, *(f"  {name:<{width}}  {value}" for name, value in self.lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in self.lines)
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>"


def explain(scan: DataScan) -> Explanation:
    """What a pyiceberg scan reads, and whether it runs in the engine under enable() and why.

    Args:
        scan: What table.scan(...) returns.
    """
    from pyiceberg.expressions import AlwaysTrue

    from icebergexec import _expressions
    from icebergexec._adapters import for_installed_pyiceberg

    adapter = for_installed_pyiceberg()
    if not adapter.is_scan(scan):
        raise InvalidArgumentError(f"explain: scan is a {type(scan).__name__}; it must be what table.scan(...) returns")
    metadata, snapshot = scan.table_metadata, scan.snapshot()
    reason = adapter.reason_for_pyiceberg(scan)
    terms = ""
    try:
        wire = _expressions.to_wire(scan.row_filter, metadata.schema(), scan.case_sensitive)
        if wire is not None:
            count = sum("args" not in node for node in json.loads(wire.text))
            terms = f"{count} term{'s' if count > 1 else ''}: "
    except UnsupportedError as cause:
        reason = reason or str(cause)
    configuration = _config.current()
    lines = [
        ("table", adapter.name_of(scan)),
        ("format version", str(metadata.format_version)),
        ("snapshot", "none: the table has no rows" if snapshot is None else snapshot_text(snapshot)),
        ("columns", ", ".join(field.name for field in scan.projection().fields)),
        (
            "filter",
            "none" if isinstance(scan.row_filter, AlwaysTrue) else f"{terms}{short(str(scan.row_filter))}",
        ),
        ("limit", "none" if scan.limit is None else f"{scan.limit:,} rows"),
        ("runs in", "the engine, under enable()" if reason is None else f"pyiceberg, because {reason}"),
        ("memory limit", f"{format_size(configuration['memory-limit'])} ({configuration.source('memory-limit')})"),
    ]
    return Explanation("scan", lines)


def snapshot_text(snapshot: Any) -> str:
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    counts = [
        (summary.get("total-data-files"), "data files"),
        (summary.get("total-delete-files"), "delete files"),
        (summary.get("total-records"), "rows before deletes"),
        (summary.get("total-equality-deletes"), "equality deletes"),
        (summary.get("total-position-deletes"), "position deletes"),
    ]
    known = [f"{int(count):,} {what}" for count, what in counts if count is not None and count != "0"]
    return f"{snapshot.snapshot_id}" + (f" ({', '.join(known)})" if known else "")


def short(text: str, length: int = 200) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
