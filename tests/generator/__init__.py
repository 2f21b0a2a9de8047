"""Iceberg tables with real delete files, for tests, the demo and benchmarks."""

from tests.generator.writer import TableWriter

__all__ = ["TableWriter"]
