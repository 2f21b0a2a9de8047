"""Exceptions by code, and what is said when there is no library."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import icebergexec
from icebergexec import _library, errors


@pytest.mark.parametrize(
    ("code", "kind", "builtin"),
    [
        (1, icebergexec.InvalidArgumentError, ValueError),
        (2, icebergexec.NotFoundError, FileNotFoundError),
        (3, icebergexec.MemoryLimitError, MemoryError),
        (4, icebergexec.SpillFullError, OSError),
        (5, icebergexec.Cancelled, Exception),
        (6, icebergexec.CorruptFileError, OSError),
        (7, icebergexec.UnsupportedError, NotImplementedError),
        (8, icebergexec.PermissionDeniedError, PermissionError),
        (9, icebergexec.EngineError, RuntimeError),
        (10, icebergexec.EngineError, RuntimeError),
        (99, icebergexec.EngineError, RuntimeError),
    ],
)
def test_codes(code: int, kind: type[icebergexec.Error], builtin: type[Exception]) -> None:
    error = errors.from_code(code, "scan /t: broken", {"path": "/t"})
    assert type(error) is kind
    assert isinstance(error, builtin)
    assert isinstance(error, icebergexec.Error)
    assert str(error) == "scan /t: broken"
    assert error.detail == {"path": "/t"}
    assert error.code == code
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.code, again.detail) == (kind, str(error), code, error.detail)


def test_builtin_without_errno_confusion() -> None:
    import errno

    assert errors.from_code(2, "x").errno == errno.ENOENT  # type: ignore[attr-defined]
    assert errors.from_code(4, "x").errno == errno.ENOSPC  # type: ignore[attr-defined]


def _without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_library.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(_library, "packaged", lambda: Path("/nowhere/libicebergexec.so"))


@pytest.mark.parametrize(
    ("platform", "musl", "sentence"),
    [
        ("win32", False, "does not run on Windows"),
        ("darwin", False, "no package for macOS; build the library from source"),
        ("linux", True, "does not run on musl systems such as Alpine"),
        ("linux", False, "finds no library for linux"),
    ],
)
def test_no_library(platform: str, musl: bool, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_library(monkeypatch)
    monkeypatch.setattr(_library.sys, "platform", platform)
    monkeypatch.setattr(_library, "is_musl", lambda: musl)
    with pytest.raises(icebergexec.LibraryError, match=sentence):
        _library.find()


def test_enable_tells_about_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_library(monkeypatch)
    with pytest.raises(icebergexec.LibraryError, match="finds no library"):
        icebergexec.enable()


def test_named_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_library.ENVIRONMENT_VARIABLE, "/nowhere/lib.so")
    with pytest.raises(icebergexec.LibraryError, match=r"/nowhere/lib\.so.*ICEBERGEXEC_LIBRARY"):
        _library.find()


def test_not_a_library(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_text("not ELF")
    with pytest.raises(icebergexec.LibraryError, match=r"load .*lib\.so: "):
        _library.Library(str(tmp_path / "lib.so"))


def test_import_loads_nothing() -> None:
    program = "import sys, icebergexec; dir(icebergexec); print(sorted(m for m in sys.modules if m in ('ctypes', 'pyarrow', 'pyiceberg')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
