"""Command line of the benchmarks; see the package's docstring."""

from __future__ import annotations

import argparse
import importlib
import os
import platform

from tests.bench import harness

#: Area -> what it measures. Each is a module of this package with a function jobs().
AREAS = {
    "parquet": "reading one Parquet file",
    "deletes": "reading a table with deletes",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench BENCH=...", description="Benchmarks against other engines.")
    parser.add_argument(
        "areas",
        nargs="*",
        metavar="area",
        help=f"one or more of {', '.join(AREAS)} (default: all)",
    )
    parser.add_argument(
        "-n",
        "--rounds",
        type=int,
        default=3,
        help="interleaved rounds to take the median of",
    )
    parser.add_argument("-k", "--only", help="only jobs whose name contains this text")
    parser.add_argument("--list", action="store_true", help="list areas and jobs")
    args = parser.parse_args()
    for area in args.areas:
        if area not in AREAS:
            parser.error(f"unknown area {area!r}; there are {', '.join(AREAS)}")
    print(f"{os.cpu_count()} CPUs, {platform.machine()}, Python {platform.python_version()}, {args.rounds} rounds")
    for area in args.areas or AREAS:
        jobs = importlib.import_module(f"tests.bench.{area}").jobs()
        if args.list:
            print(f"{area}: {AREAS[area]}")
            for job in jobs:
                print(f"    {job.name}: {', '.join(job.engines)}")
            continue
        print(f"\n## {area}: {AREAS[area]}")
        harness.run(area, jobs, args.rounds, args.only)


if __name__ == "__main__":
    main()
