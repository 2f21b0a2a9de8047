"""Runs measurements in processes of their own and prints their medians."""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Generated inputs, kept between runs.
CACHE = Path(os.environ.get("ICEBERGEXEC_BENCH_CACHE", ROOT / "build" / "cache" / "bench"))


@dataclass
class Job:
    """One thing to measure: the same work done by several engines.

    `engines` maps an engine's name to a function without arguments that
    prepares the job and returns the function to measure; that one returns the
    number of rows, or an iterator of row counts (one a batch) if it streams.
    `expect` is the number of rows that every engine must come to; None if the
    engines need not agree.
    """

    name: str
    engines: dict[str, Callable[[], Callable[[], int | Iterator[int]]]]
    prepare: Callable[[], None] = lambda: None
    expect: int | None = None
    note: str = ""


@dataclass
class Figures:
    """Measurements of one engine at one job, a list entry a round."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    peak: list[float] = field(default_factory=list)
    error: str = ""

    def row(self) -> list[str]:
        if self.error:
            return [self.error, "", "", ""]
        first = f"{statistics.median(self.first):.2f}" if self.first else "-"
        return [
            f"{statistics.median(self.cpu):.2f}",
            f"{statistics.median(self.wall):.2f}",
            f"{statistics.median(self.peak) / 1e6:.0f}",
            first,
        ]


def run(area: str, jobs: list[Job], rounds: int, only: str | None = None) -> None:
    """Measures every job of an area and prints one table a job."""
    for job in jobs:
        if only and only not in job.name:
            continue
        job.prepare()
        figures = {engine: Figures() for engine in job.engines}
        for _ in range(rounds):
            for engine, figure in figures.items():
                if not figure.error:
                    _measure(area, job, engine, figure)
        _print(job, figures)


def _measure(area: str, job: Job, engine: str, figure: Figures) -> None:
    command = [sys.executable, "-m", "tests.bench.harness", area, job.name, engine]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        figure.error = f"fails: {last[:100]}"
        return
    result = json.loads(done.stdout.strip().splitlines()[-1])
    if job.expect is not None and result["rows"] != job.expect:
        figure.error = f"WRONG: {result['rows']} rows instead of {job.expect}"
        return
    figure.cpu.append(result["cpu"])
    figure.wall.append(result["wall"])
    figure.peak.append(result["peak"])
    if result["first"] is not None:
        figure.first.append(result["first"])


def _print(job: Job, figures: dict[str, Figures]) -> None:
    print(f"\n### {job.name}\n")
    if job.note:
        print(f"{job.note}\n")
    print("| engine | CPU s | wall s | peak RSS over idle, MB | first batch s |")
    print("|---|---|---|---|---|")
    for engine, figure in figures.items():
        print(f"| {engine} | {' | '.join(figure.row())} |")
    sys.stdout.flush()


def _peak_rss() -> int:
    """The high-water mark of this process's resident memory, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmHWM")


def _child(area: str, job_name: str, engine: str) -> None:
    module: Any = importlib.import_module(f"tests.bench.{area}")
    job = next(j for j in module.jobs() if j.name == job_name)
    work = job.engines[engine]()
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM to the current size
    idle = _peak_rss()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    first = None
    result = work()
    if isinstance(result, int):
        rows = result
    else:
        rows = 0
        for n in result:
            if first is None:
                first = time.perf_counter() - start
            rows += n
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        json.dumps(
            {
                "rows": rows,
                "wall": wall,
                "cpu": cpu,
                "peak": _peak_rss() - idle,
                "first": first,
            }
        )
    )


if __name__ == "__main__":
    _child(*sys.argv[1:])
