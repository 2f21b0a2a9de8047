"""Streams: what every operation returns.

    Stream --iterate-------------> pyarrow.RecordBatch (without pyarrow: objects with __arrow_c_array__)
           --to_pyarrow()--------> pyarrow.RecordBatchReader, with typed exceptions and Ctrl-C
           --__arrow_c_stream__--> any other consumer: polars, duckdb, nanoarrow

Batches are pulled with a timeout of 50 ms, so that Python sees signals between
pulls. The engine's stream ends when the Stream or its reader is closed, when it
is collected, and at interpreter exit.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from icebergexec import _library, errors
from icebergexec._capsule import capsule
from icebergexec._library import ArrowArray, ArrowArrayStream, ArrowSchema, Library

if TYPE_CHECKING:
    import pyarrow as pa

    from icebergexec._engine import Engine

PULL_TIMEOUT_MS = 50

logger = logging.getLogger("icebergexec")


class Batch:
    """A record batch for consumers of the Arrow PyCapsule interface; it can be taken once."""

    def __init__(self, schema: ArrowSchema, array: ArrowArray) -> None:
        self._schema: ArrowSchema | None = schema
        self._array: ArrowArray | None = array
        self.num_rows = int(array.length)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        if self._schema is None or self._array is None:
            raise errors.InvalidArgumentError("the batch was taken already")
        taken = capsule(self._schema), capsule(self._array)
        self._schema = self._array = None
        return taken

    def __repr__(self) -> str:
        return f"<icebergexec.Batch of {self.num_rows} rows>"


class SchemaExport:
    """The schema of an open stream for consumers of the Arrow PyCapsule interface."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __arrow_c_schema__(self) -> object:
        return capsule(self._stream._export_schema())


class _Handle:
    """The engine's stream. Apart from the Stream, so that it can be released after that is gone."""

    def __init__(self, library: Library, pointer: ctypes.c_void_p, name: str) -> None:
        self.library = library
        self.pointer = pointer
        self.name = name
        self.start = time.monotonic()
        self.pulling = threading.Lock()  # held during each pull and the release
        self.exported = False
        self.last_stats: dict[str, Any] = {}

    def release(self) -> None:
        """Give the handle back. Ends the stream, unless a consumer of the Arrow interface has it now."""
        if not self.exported:
            self.cancel()
        with self.pulling:
            try:
                self.last_stats = self.library.call_for_json("iex_stream_stats", self.pointer)
                self.library.call("iex_stream_release", ctypes.byref(self.pointer))
            except errors.Error:
                return  # a forked child: what the parent holds is the parent's to free
        stats, seconds = self.last_stats, time.monotonic() - self.start
        logger.info(
            "%s: %d rows in %d batches, %.2f s", self.name, stats.get("rows", 0), stats.get("batches", 0), seconds
        )

    def cancel(self) -> None:
        try:
            self.library.call("iex_stream_cancel", self.pointer)
        except errors.Error:
            pass  # its engine was closed, or this is a forked child: nothing is left to cancel


class Stream:
    """Record batches that share one schema, read once, in order.

    A context manager; also closed when it is no longer referenced.
    """

    def __init__(self, engine: Engine, pointer: ctypes.c_void_p, name: str) -> None:
        self._engine = engine  # the engine stays open as long as its streams
        self._handle = _Handle(engine._library, pointer, name)
        self._release = weakref.finalize(self, self._handle.release)  # runs at interpreter exit, too
        self._schema: pa.Schema | None = None
        self._ended = False

    # -- what it holds

    @property
    def schema(self) -> Any:
        """The schema: a pyarrow.Schema, or without pyarrow an object with __arrow_c_schema__."""
        if self._schema is None:
            try:
                import pyarrow as pa
            except ImportError:
                return SchemaExport(self)
            exported = self._export_schema()  # named, since it frees itself when nothing refers to it
            self._schema = pa.Schema._import_from_c(exported.address)
        return self._schema

    def stats(self) -> dict[str, Any]:
        """Counters of this stream (rows, bytes and so on), up to now or to its end."""
        if self.closed:
            return dict(self._handle.last_stats)
        return self._handle.library.call_for_json("iex_stream_stats", self._handle.pointer)

    @property
    def closed(self) -> bool:
        return not self._release.alive

    def _export_schema(self) -> ArrowSchema:
        self._check_open()
        schema = ArrowSchema()
        self._handle.library.call("iex_stream_schema", self._handle.pointer, ctypes.byref(schema))
        return schema

    # -- reading

    def __iter__(self) -> Iterator[Any]:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            return self._batches()
        return self._record_batches()

    def _record_batches(self, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
        """The rest of the batches, under a schema that may differ from the stream's in metadata."""
        import pyarrow as pa

        with self._handle.pulling:  # so that the end, which another thread may meet, does not come in between
            if self._ended:
                return
            schema = self.schema if schema is None else schema
        while (array := self._pull()) is not None:
            yield pa.RecordBatch._import_from_c(array.address, schema)

    def _batches(self) -> Iterator[Batch]:
        while (array := self._pull()) is not None:
            yield Batch(self._export_schema(), array)

    def _pull(self) -> ArrowArray | None:
        """The next batch, or None at the end."""
        handle, array = self._handle, ArrowArray()
        try:
            while True:
                with handle.pulling:
                    if self._ended:  # perhaps in another thread, while this one waited
                        return None
                    self._check_open()
                    status = handle.library.call(
                        "iex_stream_next", handle.pointer, PULL_TIMEOUT_MS, ctypes.byref(array)
                    )
                    self._ended = status == _library.END
                if status != _library.PENDING:
                    break
        except KeyboardInterrupt:
            self.close()
            raise
        if status == _library.END:
            self.close()
            return None
        return array

    def _count(self) -> int:
        """The number of rows in the rest of the stream."""
        rows = 0
        while (array := self._pull()) is not None:
            rows += int(array.length)
        return rows

    def to_pyarrow(self) -> pa.RecordBatchReader:
        """A reader over the rest of the stream. Closing or collecting it closes the stream."""
        try:
            from icebergexec._reader import closing_reader
        except ImportError:
            raise ImportError("to_pyarrow() needs pyarrow; run: pip install pyarrow", name="pyarrow") from None
        return closing_reader(self.schema, self._record_batches(), self.close)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The stream itself; from then on only the consumer reads it."""
        self._check_open()
        exported = ArrowArrayStream()
        self._handle.library.call("iex_stream_export", self._handle.pointer, ctypes.byref(exported))
        self._handle.exported = True
        self._engine._keep_for_consumers()
        return capsule(exported)

    # -- ending

    def cancel(self) -> None:
        """Ask the stream to stop, from any thread; whoever reads it gets icebergexec.Cancelled."""
        if not self.closed:
            self._handle.cancel()

    def close(self) -> None:
        """End the stream and free what it holds. Batches already read stay valid."""
        if self._schema is None and "pyarrow" in sys.modules and not self.closed:
            _ = self.schema  # known to the end
        self.cancel()
        self._release()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Stream cannot be pickled or copied; collect it, or open a scan in the other process")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise errors.Cancelled("read stream: the stream is closed")

    def __repr__(self) -> str:
        return f"<icebergexec.Stream, {'closed' if self.closed else 'open'}>"
