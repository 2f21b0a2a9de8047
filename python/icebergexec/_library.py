"""The shared library: where it is, whether it fits, and calls into it.

    first use --> find --> dlopen --> ABI version --> prototypes --> Library
                  ICEBERGEXEC_LIBRARY, else lib/ in this package

Nothing here runs at import: a process that only imported the package can still
fork. ctypes.CDLL releases the interpreter lock around every call.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from icebergexec import errors

ABI_MAJOR = 1
ABI_MINOR = 0
ENVIRONMENT_VARIABLE = "ICEBERGEXEC_LIBRARY"

OK = 0
PENDING = -1
END = -2

_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class CError(ctypes.Structure):
    """struct iex_error."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("code", ctypes.c_int32),
        ("message", ctypes.c_char_p),
        ("detail", ctypes.c_char_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(CError))

    def to_exception(self, status: int) -> errors.Error:
        """The exception for a call that returned status; releases the texts."""
        message = (self.message or b"").decode(
            "utf-8", "replace"
        ) or f"the engine returned status {status} without a message"
        try:
            detail = json.loads(self.detail) if self.detail else {}
        except ValueError:
            detail = {"text": self.detail.decode("utf-8", "replace")}
        if self.release:
            _Release(self.release)(ctypes.addressof(self))
        return errors.from_code(status, message, detail)


class _Releasable(ctypes.Structure):
    """An Arrow structure: owned until its release is null, released at the latest with this object."""

    def free(self) -> None:
        if self.release:
            _Release(self.release)(ctypes.addressof(self))

    def __del__(self) -> None:
        self.free()

    @property
    def address(self) -> int:
        return ctypes.addressof(self)


class ArrowSchema(_Releasable):
    """struct ArrowSchema."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowArray(_Releasable):
    """struct ArrowArray."""

    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.c_void_p),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowArrayStream(_Releasable):
    """struct ArrowArrayStream."""

    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_HANDLE_OUT = ctypes.POINTER(ctypes.c_void_p)
_ERROR = ctypes.POINTER(CError)

# Each function that ends in an iex_error pointer and returns a status.
_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "iex_engine_open": (ctypes.c_char_p, ctypes.c_size_t, _HANDLE_OUT),
    "iex_engine_close": (_HANDLE_OUT,),
    "iex_engine_stats": (ctypes.c_void_p, _HANDLE_OUT),
    "iex_scan": (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, _HANDLE_OUT),
    "iex_plan": (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, _HANDLE_OUT),
    "iex_stream_schema": (ctypes.c_void_p, ctypes.POINTER(ArrowSchema)),
    "iex_stream_next": (ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ArrowArray)),
    "iex_stream_cancel": (ctypes.c_void_p,),
    "iex_stream_stats": (ctypes.c_void_p, _HANDLE_OUT),
    "iex_stream_release": (_HANDLE_OUT,),
    "iex_stream_export": (ctypes.c_void_p, ctypes.POINTER(ArrowArrayStream)),
}


class Library:
    """A loaded library."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._process = os.getpid()
        try:
            self._dll = ctypes.CDLL(path)
            self._dll.iex_abi_version.restype = ctypes.c_int32
            abi = int(self._dll.iex_abi_version())
        except (OSError, AttributeError) as cause:
            raise errors.LibraryError(f"load {path}: {cause}") from None
        self.abi = (abi >> 16, abi & 0xFFFF)
        if self.abi[0] != ABI_MAJOR or self.abi[1] < ABI_MINOR:
            raise errors.LibraryError(
                f"load {path}: the library has ABI version {self.abi[0]}.{self.abi[1]} and this package needs "
                f"{ABI_MAJOR}.{ABI_MINOR} or a later {ABI_MAJOR}.x; install a library and a package of the same release"
            )
        self._dll.iex_version.restype = ctypes.c_char_p
        self._dll.iex_string_free.argtypes = (ctypes.c_void_p,)
        self._dll.iex_string_free.restype = None
        self._functions: dict[str, Callable[..., int]] = {}
        for name, arguments in _PROTOTYPES.items():
            function = getattr(self._dll, name)
            function.argtypes = (*arguments, _ERROR)
            function.restype = ctypes.c_int32
            self._functions[name] = function

    @property
    def version(self) -> str:
        return str(self._dll.iex_version().decode())

    def forked(self) -> bool:
        """Whether this is a forked child of the process that loaded the library, where its threads do not run."""
        return os.getpid() != self._process

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function of the library: its status if negative or zero, else the exception for its error."""
        error = CError()
        status = self._functions[name](*arguments, ctypes.byref(error))
        if status > OK:
            raise error.to_exception(status)
        return status

    def call_for_json(self, name: str, handle: ctypes.c_void_p) -> dict[str, Any]:
        """Call a function that hands out a JSON object."""
        text = ctypes.c_void_p()
        self.call(name, handle, ctypes.byref(text))
        if not text.value:
            return {}
        try:
            document: dict[str, Any] = json.loads(ctypes.string_at(text.value))
        finally:
            self._dll.iex_string_free(text)
        return document


_lock = threading.Lock()
_loaded: Library | None = None


def load() -> Library:
    """The library, loaded at the first call."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _refuse_subinterpreter()
                _loaded = Library(find())
    return _loaded


def loaded() -> Library | None:
    """The library if something has loaded it."""
    return _loaded


def packaged() -> Path:
    """Where the wheel keeps the library."""
    return Path(__file__).parent / "lib" / "libicebergexec.so"


def find() -> str:
    """The path of the library; LibraryError says in one sentence why there is none."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        if not os.path.isfile(named):
            raise errors.LibraryError(f"load {named}: there is no such file; correct or unset {ENVIRONMENT_VARIABLE}")
        return named
    if packaged().is_file():
        return str(packaged())
    if sys.platform == "win32":
        raise errors.LibraryError(
            "icebergexec does not run on Windows; use it under Linux, for example in WSL or a container"
        )
    if sys.platform == "darwin":
        raise errors.LibraryError(
            "icebergexec has no package for macOS; build the library from source (make lib) and set "
            f"{ENVIRONMENT_VARIABLE} to its path"
        )
    if is_musl():
        raise errors.LibraryError(
            "icebergexec does not run on musl systems such as Alpine, which cannot load its library; use a system with glibc"
        )
    raise errors.LibraryError(
        f"icebergexec finds no library for {sys.platform} {platform.machine()}; install a wheel for this platform, or build "
        f"the library from source (make lib) and set {ENVIRONMENT_VARIABLE} to its path"
    )


def is_musl() -> bool:
    """Whether this is Linux without glibc."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return not os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return True


def _refuse_subinterpreter() -> None:
    """The library keeps one state for the process, and its callers' finalizers need the main interpreter."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # since Python 3.13, and before
        try:
            current: Any = importlib.import_module(name).get_current()
        except ImportError:
            continue
        if int(current[0] if isinstance(current, tuple) else current) != 0:
            raise errors.LibraryError("icebergexec runs in the main interpreter only, not in a subinterpreter")
        return
