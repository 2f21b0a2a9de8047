"""enable(), disable() and enabled(): pyiceberg's own methods in the engine.

Hooks are installed while the process or at least one context wants them, and
act only where they are wanted: everywhere after enable(), inside the block of
enabled() otherwise.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from icebergexec import _config, _engine, _library
from icebergexec._adapters import for_installed_pyiceberg
from icebergexec._adapters._hooks import Installation

_lock = threading.RLock()
_for_process = False
_contexts = 0
_installation: Installation | None = None


def enable(**settings: Any) -> None:
    """Run pyiceberg's methods in the engine, in this whole process, until disable().

    May be called again; settings given then replace earlier ones of the same
    name. They are those of icebergexec.config(), as identifiers: memory_limit,
    spill_dir, spill_limit, threads, path_prefixes and so on.
    """
    global _for_process
    parsed = _config.parse_arguments(settings, "argument of enable()")
    with _lock:
        _install()
        _config.set_process({**_config.process(), **parsed})
        _for_process = True


def disable() -> None:
    """Undo enable(): pyiceberg's own objects are back, settings given to enable() are forgotten."""
    global _for_process
    with _lock:
        _for_process = False
        _config.set_process({})
        _engine.forget_shared()
        _uninstall_if_unwanted()


@contextlib.contextmanager
def enabled(**settings: Any) -> Iterator[None]:
    """Run pyiceberg's methods in the engine inside a `with` block, in this thread or task only.

    Settings hold there on top of those of enable(). Readers that were opened
    inside the block may be read after it.
    """
    global _contexts
    parsed = _config.parse_arguments(settings, "argument of enabled()")
    with _lock:
        _install()
        _contexts += 1
    token = _config.push_context(parsed)
    try:
        yield
    finally:
        _config.pop_context(token)
        with _lock:
            _contexts -= 1
            _uninstall_if_unwanted()


def is_enabled() -> bool:
    """Whether pyiceberg's methods run in the engine here."""
    return _for_process or _config.in_context()


def _install() -> None:
    global _installation
    _library.find()  # not loaded yet, so that the process can still fork; but a missing library is told here
    if _installation is None:
        _installation = Installation(for_installed_pyiceberg().hooks(), is_enabled)


def _uninstall_if_unwanted() -> None:
    global _installation
    if _installation is not None and not _for_process and _contexts == 0:
        _installation.undo()
        _installation = None
