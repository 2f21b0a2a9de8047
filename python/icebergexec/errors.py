"""Exceptions, one for each error code of the engine.

Each class is also the builtin exception that a Python user would expect for
the cause, so `except FileNotFoundError` and `except icebergexec.NotFoundError`
both work:

    code                  exception                 builtin
    1  InvalidArgument    InvalidArgumentError      ValueError
    2  NotFound           NotFoundError             FileNotFoundError
    3  MemoryLimit        MemoryLimitError          MemoryError
    4  SpillFull          SpillFullError            OSError (ENOSPC)
    5  Cancelled          Cancelled                 -
    6  Corrupt            CorruptFileError          OSError (EIO)
    7  Unsupported        UnsupportedError          NotImplementedError
    8  PermissionDenied   PermissionDeniedError     PermissionError
    9  Internal           EngineError               RuntimeError
    10 Unusable           EngineError               RuntimeError
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

__all__ = [
    "Cancelled",
    "CorruptFileError",
    "EngineError",
    "Error",
    "InvalidArgumentError",
    "LibraryError",
    "MemoryLimitError",
    "NotFoundError",
    "PermissionDeniedError",
    "SpillFullError",
    "UnsupportedError",
    "from_code",
]


class Error(Exception):
    """Any error of icebergexec. `code` is the engine's number, 0 if the error arose in Python."""

    code: int = 0
    detail: Mapping[str, Any]

    def __init__(self, message: str, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail or {}

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, dict(self.detail)), {"code": self.code}


class InvalidArgumentError(Error, ValueError):
    """A request, option or expression is wrong; the caller must change it."""

    code = 1


class NotFoundError(Error, FileNotFoundError):
    """A file, snapshot, reference or column does not exist."""

    code = 2
    errno = errno.ENOENT


class MemoryLimitError(Error, MemoryError):
    """The memory limit was reached and nothing could be spilled."""

    code = 3


class SpillFullError(Error, OSError):
    """The spill disk, or the share of it that was allowed, is full."""

    code = 4
    errno = errno.ENOSPC


class Cancelled(Error):
    """The operation was cancelled, or its engine was closed."""

    code = 5


class CorruptFileError(Error, OSError):
    """The bytes of a file contradict themselves or the metadata that names it."""

    code = 6
    errno = errno.EIO


class UnsupportedError(Error, NotImplementedError):
    """Valid input that this engine cannot process."""

    code = 7


class PermissionDeniedError(Error, PermissionError):
    """Storage refused access."""

    code = 8
    errno = errno.EACCES


class EngineError(Error, RuntimeError):
    """A defect of the engine, or an engine that met one before and refuses further work."""

    code = 9


class LibraryError(Error, ImportError):
    """The shared library of the engine is missing or does not fit this package or system."""


_BY_CODE: dict[int, type[Error]] = {
    cls.code: cls
    for cls in (
        InvalidArgumentError,
        NotFoundError,
        MemoryLimitError,
        SpillFullError,
        Cancelled,
        CorruptFileError,
        UnsupportedError,
        PermissionDeniedError,
        EngineError,
    )
}
_UNUSABLE = 10


def from_code(code: int, message: str, detail: Mapping[str, Any] | None = None) -> Error:
    """The exception for an error that the engine reported."""
    error = _BY_CODE.get(code, EngineError)(message, detail)
    if code == _UNUSABLE or code not in _BY_CODE:
        error.code = code
    return error
