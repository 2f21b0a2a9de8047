"""The command line: python -m icebergexec info | scan | explain | doctor."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import shutil
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import icebergexec
from icebergexec import _config, _library
from icebergexec._sizes import format_size

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_HELP = "the location of a table metadata file (...metadata.json)"
SHOWN_ROWS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="icebergexec", description="Read Apache Iceberg tables, deletes applied, in bounded memory."
    )
    parser.add_argument("--version", action="version", version=f"icebergexec {icebergexec.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    info = commands.add_parser("info", help="what a table is: schema, partitioning, snapshots, branches and tags")
    info.add_argument("table", help=TABLE_HELP)
    info.set_defaults(run=run_info)

    scan = commands.add_parser("scan", help="read a table: to the terminal, to Parquet or to an Arrow file")
    add_scan_arguments(scan)
    scan.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to FILE instead: *.parquet, *.arrow, or - for an Arrow stream on standard output",
    )
    scan.set_defaults(run=run_scan)

    explain = commands.add_parser("explain", help="what a scan reads, and where it runs under enable()")
    add_scan_arguments(explain)
    explain.set_defaults(run=run_explain)

    doctor = commands.add_parser("doctor", help="what is installed and in force, and whether it works")
    doctor.set_defaults(run=run_doctor)

    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (icebergexec.Error, ValueError) as failure:  # the engine's, and pyiceberg's about columns and snapshots
        print(f"icebergexec: {first_line(failure)}", file=sys.stderr)
        return 1
    except ImportError as failure:
        print(f"icebergexec: this needs {failure.name}; run: pip install {failure.name}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def first_line(failure: Exception) -> str:
    return str(failure).partition("\n")[0]


def add_scan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", help=TABLE_HELP)
    parser.add_argument(
        "-c", "--columns", metavar="A,B", help="the columns to read, separated by commas (default: all)"
    )
    parser.add_argument(
        "-f",
        "--filter",
        metavar="TEXT",
        help="keep matching rows only, such as \"id > 5 and city = 'Oslo'\" (needs pyiceberg)",
    )
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="read at most N rows")
    parser.add_argument("--snapshot", type=int, metavar="ID", help="the snapshot to read (default: the current one)")
    parser.add_argument("--memory-limit", metavar="SIZE", help="what the engine may use, such as 256MiB")


# -- info


def run_info(options: argparse.Namespace) -> int:
    path = options.table
    if path.startswith("file:"):
        path = unquote(urlsplit(path).path)
    metadata = read_metadata(path)
    try:
        lines = list(describe(metadata))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise icebergexec.CorruptFileError(f"read {path}: {NO_TABLE}") from None
    print("\n".join(lines))
    return 0


NO_TABLE = "this is not the metadata of an Iceberg table"


def read_metadata(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as failure:
        raise icebergexec.NotFoundError(f"read {path}: {failure.strerror}") from None
    try:
        return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except RecursionError:
        raise icebergexec.CorruptFileError(f"read {path}: its JSON is nested too deeply") from None
    except (ValueError, OSError, EOFError, zlib.error) as failure:
        raise icebergexec.CorruptFileError(f"read {path}: {failure}") from None


def describe(metadata: Any) -> Iterator[str]:
    """The lines that tell what a table is."""
    version, location = metadata["format-version"], metadata["location"]
    schemas = {schema.get("schema-id", 0): schema for schema in metadata.get("schemas", [metadata.get("schema", {})])}
    schema = schemas.get(metadata.get("current-schema-id", 0), {"fields": []})
    names = {field["id"]: field["name"] for field in schema["fields"]}
    yield f"table           {location}"
    yield f"format version  {version}"
    yield "columns"
    for field in schema["fields"]:
        required = " not null" if field.get("required") else ""
        yield f"  {field['id']:>4}  {field['name']}  {type_text(field['type'])}{required}"
    for spec in metadata.get("partition-specs", []):
        fields = ", ".join(f"{f['transform']}({names.get(f['source-id'], f['source-id'])})" for f in spec["fields"])
        mark = " (current)" if spec["spec-id"] == metadata.get("default-spec-id") else ""
        yield f"partition spec {spec['spec-id']}{mark}: {fields or 'unpartitioned'}"
    by_snapshot: dict[int, list[str]] = {}
    for name, ref in metadata.get("refs", {}).items():
        by_snapshot.setdefault(ref["snapshot-id"], []).append(f"{ref['type']} {name}")
    yield f"snapshots       {len(metadata.get('snapshots', []))}"
    for snapshot in metadata.get("snapshots", []):
        summary = snapshot.get("summary", {})
        totals = [f"{summary[k]} {t}" for k, t in TOTALS if summary.get(k, "0") != "0"]
        refs = by_snapshot.get(snapshot["snapshot-id"], [])
        parts = [summary.get("operation", ""), ", ".join(totals), ", ".join(refs)]
        yield f"  {snapshot['snapshot-id']:>20}  " + "; ".join(part for part in parts if part)


TOTALS = (
    ("total-data-files", "data files"),
    ("total-delete-files", "delete files"),
    ("total-records", "rows before deletes"),
)


def type_text(kind: Any) -> str:
    """An Iceberg type as people write it."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "list":
        return f"list<{type_text(kind['element'])}>"
    if kind["type"] == "map":
        return f"map<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    return f"struct<{', '.join(f['name'] + ': ' + type_text(f['type']) for f in kind['fields'])}>"


# -- scan


def run_scan(options: argparse.Namespace) -> int:
    limit = options.limit
    if options.output is None and limit is None:
        limit = SHOWN_ROWS + 1  # one more than is shown tells whether there is more
    with icebergexec.Engine(memory_limit=options.memory_limit) as engine:
        stream = engine.scan(
            options.table,
            options.filter,
            options.columns.split(",") if options.columns else ("*",),
            snapshot_id=options.snapshot,
            limit=limit,
        )
        if options.output is None:
            table = stream.to_pyarrow().read_all()
            shown = table if options.limit is not None else table.slice(0, SHOWN_ROWS)
            print_table(shown)
            if shown.num_rows < table.num_rows:
                print(f"the first {SHOWN_ROWS} rows; --limit shows more, --output writes all")
            return 0
        try:
            write(stream, options.output)
        except (icebergexec.Error, BrokenPipeError):
            raise
        except OSError as failure:
            reason = os.strerror(failure.errno) if failure.errno else first_line(failure)
            raise icebergexec.Error(f"write {options.output}: {reason}") from None
        if options.output != "-":
            print(f"{options.output}: {stream.stats()['rows']:,} rows", file=sys.stderr)
    return 0


def write(stream: icebergexec.Stream, output: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if output.endswith(".parquet"):
        with pq.ParquetWriter(output, stream.schema, compression="zstd") as parquet:
            for batch in stream:
                parquet.write_batch(batch)
        return
    if output != "-" and not output.endswith((".arrow", ".arrows")):
        raise icebergexec.InvalidArgumentError(f"write {output}: the name must end with .parquet or .arrow, or be -")
    new = pa.ipc.new_stream if output == "-" or output.endswith(".arrows") else pa.ipc.new_file
    with new(sys.stdout.buffer if output == "-" else output, stream.schema) as arrow:
        for batch in stream:
            arrow.write_batch(batch)


def print_table(table: pa.Table) -> None:
    """Columns side by side, cut to what a line can show."""
    width = shutil.get_terminal_size((120, 24)).columns
    cells = [[short(name) for name in table.column_names]]
    cells += [
        [short("" if value is None else str(value)) for value in row]
        for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for i, row in enumerate(cells):
        print("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()[:width])
        if i == 0:
            print("  ".join("-" * w for w in widths)[:width])


def short(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= 40 else text[:37] + "..."


# -- explain and doctor


def run_explain(options: argparse.Namespace) -> int:
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table import ALWAYS_TRUE, StaticTable

    from icebergexec import _expressions

    with icebergexec.enabled(memory_limit=options.memory_limit):
        try:
            table = StaticTable.from_metadata(options.table)
        except FileNotFoundError:
            raise icebergexec.NotFoundError(f"read {options.table}: No such file or directory") from None
        except OSError as failure:
            raise icebergexec.Error(f"read {options.table}: {first_line(failure)}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ValidationError):
            raise icebergexec.CorruptFileError(f"read {options.table}: {NO_TABLE}") from None
        scan = table.scan(
            _expressions.parse(options.filter) if options.filter else ALWAYS_TRUE,
            tuple(options.columns.split(",")) if options.columns else ("*",),
            snapshot_id=options.snapshot,
            limit=options.limit,
        )
        print(icebergexec.explain(scan))
    return 0


def run_doctor(_: argparse.Namespace) -> int:
    """Prints what is found; returns 1 when something does not work."""
    problems = []
    print(
        f"icebergexec     {icebergexec.__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    )
    try:
        library = _library.load()
        print(f"library         {library.path}, version {library.version}, ABI {library.abi[0]}.{library.abi[1]}")
        if library.version != icebergexec.__version__:
            problems.append(f"the library has version {library.version} and the package {icebergexec.__version__}")
    except icebergexec.LibraryError as failure:
        print("library         none")
        problems.append(str(failure))
    for name in ("pyiceberg", "pyarrow"):
        try:
            print(f"{name:<16}{__import__(name).__version__}")
        except ImportError:
            print(f"{name:<16}not installed")
    try:
        from icebergexec._adapters import for_installed_pyiceberg

        places = ", ".join(hook.place.removeprefix("pyiceberg.") for hook in for_installed_pyiceberg().hooks())
        print(f"enable()        replaces {places}")
    except ImportError:
        print("enable()        has nothing to plug into")
    except icebergexec.UnsupportedError as failure:
        problems.append(str(failure))
    try:
        configuration = _config.current()
        print("configuration")
        print("\n".join(f"  {line}" for line in str(configuration).splitlines()))
        problems += check_spill_directory(configuration.spill_dir)
    except icebergexec.InvalidArgumentError as failure:
        problems.append(str(failure))
    if _library.loaded() is not None and not problems:
        with icebergexec.Engine() as engine:
            print(f"engine          opens, {format_size(engine.stats()['memory_limit'])} of memory")
    print("storage         local files: paths and file: locations")
    for problem in problems:
        print(f"PROBLEM         {problem}")
    return 1 if problems else 0


def check_spill_directory(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return [f"the spill directory {folder} does not exist; create it or change spill-dir"]
    if not os.access(folder, os.W_OK):
        return [f"the spill directory {folder} cannot be written to; change its rights or spill-dir"]
    print(f"spill directory {folder}, {format_size(shutil.disk_usage(folder).free)} free")
    return []


if __name__ == "__main__":
    sys.exit(main())
