"""What enable() puts in place of pyiceberg's own code: one module per supported version.

Each module names the pyiceberg versions it is for and lists its hooks: where in
pyiceberg something is replaced, and by what.
"""

from __future__ import annotations

from types import ModuleType

from icebergexec.errors import UnsupportedError

KNOWN = {"0.12": "_v0_12"}


def for_installed_pyiceberg() -> ModuleType:
    """The adapter of the installed pyiceberg; an error names the versions known."""
    try:
        import pyiceberg
    except ImportError:
        raise ImportError(
            "icebergexec.enable() plugs into pyiceberg, which is not installed; run: pip install 'pyiceberg[pyarrow]'"
        ) from None
    version = pyiceberg.__version__
    name = KNOWN.get(".".join(version.split(".")[:2]))
    if name is None:
        known = ", ".join(f"{release}.x" for release in sorted(KNOWN))
        raise UnsupportedError(
            f"enable: pyiceberg {version} is not known to this version of icebergexec, which knows {known}"
        )
    import importlib

    return importlib.import_module(f"{__name__}.{name}")
