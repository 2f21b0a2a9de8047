"""A pytest plugin that runs a test suite with icebergexec enabled: pytest -p enabling."""

from __future__ import annotations

import icebergexec


def pytest_configure() -> None:
    icebergexec.enable()


def pytest_report_header() -> str:
    return f"icebergexec {icebergexec.__version__} enabled"
