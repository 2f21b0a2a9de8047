"""Engines: a memory limit, a spill directory, and the operations that run within them.

Most users never make one: scan() and pyiceberg's methods share an engine per
set of engine settings, opened at first use and closed when no context and no
stream needs it any more.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from icebergexec import _capsule, _config, _library, errors
from icebergexec._stream import Stream

if TYPE_CHECKING:
    from icebergexec._scan import Filter, Source


class Engine:
    """An engine of its own. Settings that are not given come from the configuration.

    A context manager; also closed when nothing references it or one of its streams.
    """

    def __init__(
        self,
        memory_limit: int | str | None = None,
        *,
        spill_dir: str | os.PathLike[str] | None = None,
        spill_limit: int | str | None = None,
        spill_compression: str | None = None,
        threads: int | None = None,
        path_prefixes: Mapping[str, str] | None = None,
    ) -> None:
        self._open(
            _config.current(
                memory_limit=memory_limit,
                spill_dir=spill_dir,
                spill_limit=spill_limit,
                spill_compression=spill_compression,
                threads=threads,
                path_prefixes=path_prefixes,
            )
        )

    @classmethod
    def _of(cls, configuration: _config.Configuration) -> Engine:
        engine = cls.__new__(cls)
        engine._open(configuration)
        return engine

    def _open(self, configuration: _config.Configuration) -> None:
        options = {key.replace("-", "_"): configuration[key] for key in _config.ENGINE_KEYS}
        document = json.dumps({name: value for name, value in options.items() if value is not None}).encode()
        self._library = _library.load()
        self._pointer = ctypes.c_void_p()
        self._library.call("iex_engine_open", document, len(document), ctypes.byref(self._pointer))
        self._memory_limit: int = configuration["memory-limit"]
        self._close = weakref.finalize(self, _close, self._library, self._pointer)

    def scan(
        self,
        table: Source,
        row_filter: Filter | None = None,
        selected_fields: tuple[str, ...] = ("*",),
        **options: Any,
    ) -> Stream:
        """The rows of a table, as icebergexec.scan() returns them, read by this engine."""
        from icebergexec import _scan

        return self._scan(_scan.request(table, row_filter, selected_fields, **options))

    def _scan(self, request: Mapping[str, Any]) -> Stream:
        return self._start("scan", request)

    def _plan(self, request: Mapping[str, Any]) -> Stream:
        return self._start("plan", request)

    def _start(self, operation: str, request: Mapping[str, Any]) -> Stream:
        self._check_open()
        _capsule.sweep()
        document = _dump(request)
        pointer = ctypes.c_void_p()
        self._library.call(f"iex_{operation}", self._pointer, document, len(document), ctypes.byref(pointer))
        location = request.get("metadata_location")
        name = location.text if isinstance(location, Raw) else location
        return Stream(self, pointer, f"{operation} of {name or 'a table'}")

    def stats(self) -> dict[str, Any]:
        """Memory in use and at its peak, memory that handed-out batches hold, open streams."""
        self._check_open()
        _capsule.sweep()
        return self._library.call_for_json("iex_engine_stats", self._pointer)

    def _check_open(self) -> None:
        if self.closed:
            raise errors.Cancelled("the engine is closed")

    @property
    def closed(self) -> bool:
        return not self._close.alive

    def close(self) -> None:
        """End every stream of this engine and delete what it spilled. Batches already read stay valid."""
        _capsule.sweep()
        _kept.discard(self)
        self._close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keep_for_consumers(self) -> None:
        """Stay open while consumers outside Python's sight may read streams of this engine.

        Each call also lets go of engines whose consumers have finished.
        """
        for engine in list(_kept):
            if engine.closed or engine.stats().get("open_streams") == 0:
                _kept.discard(engine)
        _kept.add(self)

    def __repr__(self) -> str:
        from icebergexec._sizes import format_size

        return f"<icebergexec.Engine of {format_size(self._memory_limit)}, {'closed' if self.closed else 'open'}>"


_kept: set[Engine] = set()


def _close(library: _library.Library, pointer: ctypes.c_void_p) -> None:
    if not library.forked():  # what the parent has is the parent's to close
        library.call("iex_engine_close", ctypes.byref(pointer))


def _dump(request: Mapping[str, Any]) -> bytes:
    """The request as JSON. Members that are JSON text already (table metadata, filters) go in as they are."""
    parts = []
    for name, value in request.items():
        if value is not None:
            parts.append(json.dumps(name) + ":" + (value.text if isinstance(value, Raw) else json.dumps(value)))
    return ("{" + ",".join(parts) + "}").encode()


class Raw:
    """JSON text inside a request."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


_shared: weakref.WeakValueDictionary[str, Engine] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()
_process_engine: Engine | None = None  # the latest shared engine outside of any enabled(): kept open between calls


def shared(configuration: _config.Configuration) -> Engine:
    """The engine that everyone with these engine settings shares."""
    global _process_engine
    key = json.dumps([configuration[name] for name in _config.ENGINE_KEYS], sort_keys=True)
    with _shared_lock:
        engine = _shared.get(key)
        if engine is None or engine.closed:
            engine = _shared[key] = Engine._of(configuration)
        if not _config.in_context():
            _process_engine = engine
        return engine


def current() -> Engine:
    """The engine that scan() and pyiceberg's methods use here, for its stats() above all."""
    return shared(_config.current())


def forget_shared() -> None:
    """Let the shared engine close as soon as nothing reads from it."""
    global _process_engine
    with _shared_lock:
        _process_engine = None
