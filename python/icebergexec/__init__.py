"""Apache Iceberg tables read right and in bounded memory.

    import icebergexec
    icebergexec.enable(memory_limit="512MiB")   # pyiceberg's own methods now run in the engine
    icebergexec.scan(table, row_filter="x > 1") # -> Stream

Importing the package loads nothing; the engine's library is loaded at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icebergexec._version import __version__
from icebergexec.errors import (
    Cancelled,
    CorruptFileError,
    EngineError,
    Error,
    InvalidArgumentError,
    LibraryError,
    MemoryLimitError,
    NotFoundError,
    PermissionDeniedError,
    SpillFullError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from icebergexec._config import Configuration
    from icebergexec._config import current as config
    from icebergexec._enable import disable, enable, enabled
    from icebergexec._engine import Engine
    from icebergexec._engine import current as engine
    from icebergexec._explain import explain
    from icebergexec._plan import Plan, Split, Task, execute, plan
    from icebergexec._scan import scan
    from icebergexec._stream import Batch, Stream

__all__ = [
    "Batch",
    "Cancelled",
    "Configuration",
    "CorruptFileError",
    "Engine",
    "EngineError",
    "Error",
    "InvalidArgumentError",
    "LibraryError",
    "MemoryLimitError",
    "NotFoundError",
    "PermissionDeniedError",
    "Plan",
    "SpillFullError",
    "Split",
    "Stream",
    "Task",
    "UnsupportedError",
    "__version__",
    "config",
    "disable",
    "enable",
    "enabled",
    "engine",
    "execute",
    "explain",
    "plan",
    "scan",
]

# Where each name lives that is imported at its first use.
_LAZY = {
    "Batch": ("_stream", "Batch"),
    "Configuration": ("_config", "Configuration"),
    "Engine": ("_engine", "Engine"),
    "Plan": ("_plan", "Plan"),
    "Split": ("_plan", "Split"),
    "Stream": ("_stream", "Stream"),
    "Task": ("_plan", "Task"),
    "config": ("_config", "current"),
    "disable": ("_enable", "disable"),
    "enable": ("_enable", "enable"),
    "enabled": ("_enable", "enabled"),
    "engine": ("_engine", "current"),
    "execute": ("_plan", "execute"),
    "explain": ("_explain", "explain"),
    "plan": ("_plan", "plan"),
    "scan": ("_scan", "scan"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module, attribute = _LAZY[name]
    value = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
