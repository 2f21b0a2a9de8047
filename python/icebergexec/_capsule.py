"""Arrow structures as PyCapsules, the form in which Python libraries exchange them.

A capsule owns its structure: the consumer moves it out (and sets its release to
null), or the capsule's destructor releases it.
"""

from __future__ import annotations

import ctypes
from typing import Any

from icebergexec._library import ArrowArray, ArrowArrayStream, ArrowSchema, _Releasable

_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
# The destructor gets the capsule while it is being destroyed, so as an address:
# a counted reference to it would bring it back.
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", _api))

_owned: dict[int, _Releasable] = {}


def _destroy(
    capsule: int, owned: dict[int, _Releasable] = _owned, get_pointer: Any = _get_pointer, get_name: Any = _get_name
) -> None:
    structure = owned.pop(get_pointer(capsule, get_name(capsule)), None)
    if structure is not None:
        structure.free()


_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)
# Capsules may outlive this module at interpreter exit, so the destructor is never freed.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_destructor))
_destructor_address = ctypes.cast(_destructor, ctypes.c_void_p)

_NAMES: dict[type[_Releasable], bytes] = {
    ArrowSchema: b"arrow_schema",
    ArrowArray: b"arrow_array",
    ArrowArrayStream: b"arrow_array_stream",
}


def capsule(structure: _Releasable) -> object:
    """A capsule that owns the structure."""
    _owned[structure.address] = structure
    return _new(structure.address, _NAMES[type(structure)], _destructor_address)
