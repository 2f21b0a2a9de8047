"""A pyarrow.RecordBatchReader that ends its source when it is closed.

pyarrow's reader over a Python generator passes our exceptions and Ctrl-C on
unchanged, which its reader over a C stream does not; but its close() leaves the
generator running. Reader adds that. It has to be a RecordBatchReader, since
pyiceberg and others test for the class, and pyarrow has no way to construct a
subclass of it; so a plain reader is made and its contents (a vtable pointer, a
weak-reference slot and one C++ pointer) move into the new object.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from types import TracebackType

import pyarrow as pa


class Reader(pa.RecordBatchReader):  # type: ignore[misc]  # pyarrow has no types
    """A RecordBatchReader with a close() that reaches its source."""

    _end: Callable[[], None]

    def __init__(self) -> None:
        """Made by closing_reader only."""

    def close(self) -> None:
        super().close()
        self._end()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def closing_reader(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], end: Callable[[], None]
) -> pa.RecordBatchReader:
    """A reader over batches that calls end when it is closed. Collecting it ends the generator behind batches."""
    plain = pa.RecordBatchReader.from_batches(schema, batches)
    if sys.implementation.name != "cpython":
        return plain
    reader = Reader()
    reader._end = end
    header = object.__basicsize__
    size = pa.RecordBatchReader.__basicsize__ - header
    of_plain = (ctypes.c_char * size).from_address(id(plain) + header)
    of_reader = (ctypes.c_char * size).from_address(id(reader) + header)
    of_plain.raw, of_reader.raw = of_reader.raw, of_plain.raw
    return reader
