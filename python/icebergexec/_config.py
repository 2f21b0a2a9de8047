"""Configuration: what may be set, where values come from, and what is in force.

    argument of a call  >  enabled(...)  >  enable(...)  >  environment  >  file  >  default
                           this context     process         PYICEBERG_EXECUTION__<KEY>
                                                                          `execution:` of .pyiceberg.yaml

Keys are written as in the file (memory-limit); arguments and the environment
write them as identifiers (memory_limit, PYICEBERG_EXECUTION__MEMORY_LIMIT).
"""

from __future__ import annotations

import contextvars
import functools
import json
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from icebergexec._sizes import ALLOWED as _SIZE_ALLOWED
from icebergexec._sizes import format_size, parse_size
from icebergexec.errors import InvalidArgumentError

logger = logging.getLogger("icebergexec")

ENVIRONMENT_PREFIX = "PYICEBERG_EXECUTION__"
MINIMUM_MEMORY_LIMIT = 16 << 20  # 16 MiB: below it one page and one dictionary per column may not fit
MAXIMUM_MEMORY_LIMIT = 1 << 50  # 1 PiB: more than any machine has, so a slip of the pen
MAXIMUM_THREADS = 1024  # each holds batches of its own; far more than this only waste memory


@dataclass(frozen=True)
class Key:
    """One setting. parse raises ValueError; allowed then says what would have been right."""

    name: str
    default: Any
    allowed: str
    parse: Callable[[object], Any]
    about: str
    shown: Callable[[Any], str] = str

    @property
    def argument(self) -> str:
        return self.name.replace("-", "_")

    @property
    def environment(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.replace("-", "_").upper()


def _integer(least: int, most: int | None = None) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError
        number = int(value)
        if number < least or (most is not None and number > most):
            raise ValueError
        return number

    return parse


def _choice(*names: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if not isinstance(value, str) or value.lower() not in names:
            raise ValueError
        return value.lower()

    return parse


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError


def _memory_limit(value: object) -> int:
    size = parse_size(value)
    if not MINIMUM_MEMORY_LIMIT <= size <= MAXIMUM_MEMORY_LIMIT:
        raise ValueError
    return size


def _spill_limit(value: object) -> int:
    size = parse_size(value)
    if size < 1:
        raise ValueError
    return size


def _directory(value: object) -> str:
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else ""
    if not isinstance(text, str) or not os.path.isdir(text):
        raise ValueError
    return text


def _prefixes(value: object) -> dict[str, str]:
    if isinstance(value, str):
        value = json.loads(value)  # json's error is a ValueError
    if not isinstance(value, Mapping):
        raise ValueError
    for before, after in value.items():
        if not isinstance(before, str) or not isinstance(after, str) or not before:
            raise ValueError
    return dict(value)


_BACKENDS = ("icebergexec", "pyarrow", "datafusion")
_BACKEND_ALLOWED = "one of " + ", ".join(_BACKENDS)


def _size_key(name: str, default: int | None, about: str) -> Key:
    return Key(name, default, _SIZE_ALLOWED, parse_size, about, format_size)


def _count_key(name: str, default: int | None, least: int, about: str) -> Key:
    return Key(name, default, f"a whole number of at least {least}", _integer(least), about)


KEYS: dict[str, Key] = {
    key.name: key
    for key in (
        Key(
            "memory-limit",
            512 << 20,
            f"from 16 MiB to 1024 TiB: {_SIZE_ALLOWED}",
            _memory_limit,
            "what the engine may use for one process-wide engine; a call's own memory_limit caps that call inside it",
            format_size,
        ),
        Key(
            "spill-dir",
            None,
            "the path of a directory that exists",
            _directory,
            "where operations spill; the system's directory for temporary files if unset",
        ),
        Key(
            "spill-limit",
            None,
            f"at least 1 byte, or not set for no limit: {_SIZE_ALLOWED}",
            _spill_limit,
            "how much may be spilled; no limit if unset",
            format_size,
        ),
        Key(
            "threads",
            None,
            f"a whole number from 1 to {MAXIMUM_THREADS}",
            _integer(1, MAXIMUM_THREADS),
            "how many threads decode and compute; the number of processors if unset",
        ),
        Key(
            "spill-compression",
            "none",
            "none",
            _choice("none"),
            "codec of spilled blocks; what is spilled is not compressed",
        ),
        Key(
            "path-prefixes",
            {},
            'a map from one location prefix to another, such as {"s3://old/": "/mnt/new/"} (JSON in the environment)',
            _prefixes,
            "locations that start with a key are opened at its value instead; the longest key wins",
        ),
        Key(
            "compute-backend",
            None,
            _BACKEND_ALLOWED,
            _choice(*_BACKENDS),
            "which backend computes, where pyiceberg has the choice",
        ),
        Key(
            "read-backend",
            None,
            _BACKEND_ALLOWED,
            _choice(*_BACKENDS),
            "which backend reads files, where pyiceberg has the choice",
        ),
        Key(
            "write-backend",
            None,
            _BACKEND_ALLOWED,
            _choice(*_BACKENDS),
            "which backend writes files, where pyiceberg has the choice",
        ),
        Key(
            "auto-detect", True, "true or false", _boolean, "whether an unset backend is chosen from the installed ones"
        ),
        _count_key(
            "planning-threshold", 100_000, 0, "accepted for pyiceberg; this engine plans in bounded memory at any size"
        ),
        _size_key("cow-threshold", 64 << 20, "accepted for pyiceberg; this engine streams rewrites at any size"),
        _size_key(
            "pos-delete-threshold", 1 << 20, "accepted for pyiceberg; this engine bounds position deletes at any size"
        ),
        _count_key(
            "spill-batch-threshold", None, 1, "accepted for pyiceberg; this engine spills by memory, not by batches"
        ),
        _count_key(
            "scanner-batch-readahead",
            None,
            0,
            "accepted for pyiceberg; this engine reads ahead within its memory limit",
        ),
        _size_key("oom-warning-threshold", 2 << 30, "accepted for pyiceberg; this engine keeps to its memory limit"),
        _size_key("materialization-warning-threshold", 1 << 30, "to_arrow() of more bytes than this logs a warning"),
    )
}
_BY_ARGUMENT = {key.argument: key for key in KEYS.values()}

# The keys that decide how an engine is opened: two contexts that agree on them share one.
ENGINE_KEYS = ("memory-limit", "spill-dir", "spill-limit", "threads", "spill-compression", "path-prefixes")


@dataclass(frozen=True)
class Setting:
    """A value in force and where it came from: "default", "argument", or the name of a file or variable."""

    value: Any
    source: str


@dataclass(frozen=True)
class Configuration(Mapping[str, Any]):
    """What is in force, by key; `source(key)` tells where a value came from."""

    settings: Mapping[str, Setting] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.settings[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    def source(self, key: str) -> str:
        return self.settings[key].source

    def __str__(self) -> str:
        width = max(map(len, self.settings), default=0)
        rows = []
        for name, setting in self.settings.items():
            unset = setting.value is None or setting.value == {}
            shown = "-" if unset else KEYS[name].shown(setting.value)
            rows.append(f"{name:<{width}}  {shown:<24}  {setting.source}")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape('-' if s.value is None else KEYS[name].shown(s.value))}</td><td>{escape(s.source)}</td></tr>"
            for name, s in self.settings.items()
        )
        return f"<table><tr><th>key</th><th>value</th><th>from</th></tr>{cells}</table>"

    @property
    def spill_dir(self) -> str:
        """The spill directory, or what stands for it when unset."""
        return self["spill-dir"] or tempfile.gettempdir()


def parse(key: Key, value: object, source: str) -> Any:
    """The value for key; the error names the key, the value, where it came from and what is allowed."""
    try:
        return key.parse(value)
    except (ValueError, TypeError):
        raise InvalidArgumentError(
            f"configuration {key.name}: {value!r} ({source}) is not allowed; it must be {key.allowed}"
        ) from None


def parse_arguments(arguments: Mapping[str, Any], source: str = "argument") -> dict[str, Setting]:
    """Settings given as keyword arguments; None means "not given"."""
    found = {}
    for name, value in arguments.items():
        key = _BY_ARGUMENT.get(name)
        if key is None:
            raise TypeError(f"unknown setting {name!r}; known are {', '.join(sorted(_BY_ARGUMENT))}")
        if value is not None:
            found[key.name] = Setting(parse(key, value, source), source)
    return found


def _from_environment() -> dict[str, Setting]:
    found = {}
    for variable, value in os.environ.items():
        if variable.upper().startswith(ENVIRONMENT_PREFIX):
            source = f"environment {variable}"
            key = KEYS.get(variable[len(ENVIRONMENT_PREFIX) :].lower().replace("_", "-"))
            if key is None:
                _warn_unknown(variable, "environment")
            else:
                found[key.name] = Setting(parse(key, value, source), source)
    return found


def _from_file() -> dict[str, Setting]:
    """The `execution:` section of the file that pyiceberg would use."""
    for directory in (os.environ.get("PYICEBERG_HOME"), os.path.expanduser("~"), os.getcwd()):
        path = os.path.join(directory, ".pyiceberg.yaml") if directory else ""
        try:
            status = os.stat(path)
        except OSError:
            continue
        if not stat.S_ISREG(status.st_mode):
            continue
        settings = _parse_file(path, status.st_mtime_ns, status.st_size)
        if settings is not None:
            return settings
    return {}


@functools.lru_cache(maxsize=8)
def _parse_file(path: str, _modified: int, _size: int) -> dict[str, Setting] | None:
    """The settings in a file; None for an empty file, which does not end the search.

    Parsed here rather than by pyiceberg, which lower-cases every key, those of
    path-prefixes too.
    """
    try:
        import strictyaml  # comes with pyiceberg, which owns the file
    except ImportError:
        return {}
    document = strictyaml.load(Path(path).read_text(encoding="utf-8")).data
    if not document:
        return None
    section: Any = next((value for name, value in document.items() if name.lower() == "execution"), {})
    source = f"file {path}"
    if not isinstance(section, Mapping):
        raise InvalidArgumentError(
            f"configuration execution: {section!r} ({source}) is not allowed; it must be a section of keys"
        )
    found = {}
    for name, value in section.items():
        key = KEYS.get(name.lower())
        if key is None:
            _warn_unknown(name, source)
        else:
            found[key.name] = Setting(parse(key, value, source), source)
    return found


@functools.lru_cache(maxsize=64)
def _warn_unknown(name: str, source: str) -> None:
    """Once for each key: it may be meant for a later version, or be misspelt."""
    logger.warning("configuration %s (%s) is not known and has no effect", name, source)


# Set by enable() for the process and by enabled() for one context.
_process: dict[str, Setting] = {}
_context: contextvars.ContextVar[Mapping[str, Setting] | None] = contextvars.ContextVar(
    "icebergexec_settings", default=None
)


def process() -> dict[str, Setting]:
    """What enable() was given."""
    return _process


def set_process(settings: dict[str, Setting]) -> None:
    global _process
    _process = settings


def push_context(settings: Mapping[str, Setting]) -> contextvars.Token[Mapping[str, Setting] | None]:
    """Put settings in force for this thread or task, on top of those already there."""
    return _context.set({**(_context.get() or {}), **settings})


def pop_context(token: contextvars.Token[Mapping[str, Setting] | None]) -> None:
    _context.reset(token)


def in_context() -> bool:
    """Whether enabled() is in force here."""
    return _context.get() is not None


def current(**arguments: Any) -> Configuration:
    """What is in force here, with the given arguments on top. Files and environment are looked at each time."""
    settings = {name: Setting(key.default, "default") for name, key in KEYS.items()}
    for layer in (_from_file(), _from_environment(), _process, _context.get() or {}, parse_arguments(arguments)):
        settings.update(layer)
    return Configuration(settings)
