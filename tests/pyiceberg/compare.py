"""pyiceberg's own unit tests, without and with icebergexec enabled: what ends differently, and whether it may.

python tests/pyiceberg/compare.py PYTEST TESTS    (build/test-pyiceberg.sh prepares both)
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
# As pyiceberg's own `make test`, without what needs services.
SELECTION = ("-m", "(unmarked or parametrize) and not integration", "--continue-on-collection-errors")
SKIPPED = [f"--ignore=tests/{folder}" for folder in ("integration", "notebooks", "benchmark")]


def main(pytest: str, tests: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        without = run(pytest, tests, Path(folder, "without.xml"), [])
        enabled = run(pytest, tests, Path(folder, "enabled.xml"), ["-p", "enabling"])
    for name, outcomes in (("without", without), ("enabled", enabled)):
        counts = Counter(outcome.split(":")[0] for outcome in outcomes.values())
        print(f"{name + ':':<10}", ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    differences = {
        test: (without.get(test, "absent"), enabled.get(test, "absent"))
        for test in sorted({*without, *enabled})
        if kind(without.get(test)) != kind(enabled.get(test))
    }
    allowed = allowed_differences()
    bad = 0
    for test, (before, after) in differences.items():
        listed = test in allowed
        bad += not listed
        print(f"\n{'allowed' if listed else 'DIFFERENT'}  {test}\n  without: {before}\n  enabled: {after}")
        if listed:
            print(f"  because: {allowed[test]}")
    for test in allowed.keys() - differences.keys():
        bad += 1
        print(f"\nLISTED BUT THE SAME  {test}: take it off allowed_differences.txt")
    print(f"\n{len(without)} tests, {len(differences)} differences, {bad} of them not allowed")
    return 1 if bad or len(without) < 1000 else 0


def run(pytest: str, tests: str, report: Path, options: list[str]) -> dict[str, str]:
    """The outcome of each test by its id."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parents[1] / "python"), tests))}
    # Nothing of the user's configuration, and no retries of network services that are not there.
    environment.update(HOME=str(report.parent), AWS_MAX_ATTEMPTS="1", AWS_EC2_METADATA_DISABLED="true")
    start = time.time()
    done = subprocess.run(
        [pytest, "tests", "-q", "-p", "no:cacheprovider", "--no-header", f"--junitxml={report}", *SELECTION, *options],
        cwd=tests,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if not report.exists():
        tail = "\n".join(line[:200] for line in done.stdout.splitlines()[-80:])
        sys.exit(f"pytest ended with {done.returncode} and no report:\n{tail}")
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        failure = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        test = f"{case.get('classname')}::{case.get('name')}"
        outcomes[test] = "passed" if failure is None else f"{failure.tag}: {(failure.get('message') or '')[:300]}"
    print(f"{len(outcomes)} tests in {time.time() - start:.0f} s", flush=True)
    return outcomes


def kind(outcome: str | None) -> str | None:
    return outcome and outcome.split(":")[0]


def allowed_differences() -> dict[str, str]:
    lines = (HERE / "allowed_differences.txt").read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines if line and not line.startswith("#"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
