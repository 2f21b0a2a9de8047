"""Arrow structures as PyCapsules, the form in which Python libraries exchange them.

    capsule() --> the consumer moves the structure out (its release is null then) or reads it in place
              --> destructor: the capsule's address is noted
              --> sweep(): what is left of the structure is freed

The destructor runs no Python code. Python code in it would be where a signal is
handled that came during the consumer's C code: Ctrl-C would be raised there and
get lost, since nothing can be raised out of a destructor.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque

from icebergexec._library import ArrowArray, ArrowArrayStream, ArrowSchema, _Releasable

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

_owned: dict[int, _Releasable] = {}  # by the address of the capsule
_dropped: deque[int] = deque()
_lock = threading.RLock()

_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_dropped.append)
# Capsules may outlive this module at interpreter exit, so neither the destructor nor the structures are freed there.
for _lasting in (_destructor, _owned):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_lasting))
_destructor_address = ctypes.cast(_destructor, ctypes.c_void_p)

_NAMES: dict[type[_Releasable], bytes] = {
    ArrowSchema: b"arrow_schema",
    ArrowArray: b"arrow_array",
    ArrowArrayStream: b"arrow_array_stream",
}


def capsule(structure: _Releasable) -> object:
    """A capsule that owns the structure."""
    sweep()
    with _lock:
        made = _new(structure.address, _NAMES[type(structure)], _destructor_address)
        before = _owned.get(id(made))
        if before is not None:  # of a capsule that was dropped just now, whose address is used again
            _dropped.remove(id(made))
        _owned[id(made)] = structure
    if before is not None:
        before.free()
    return made


def sweep() -> None:
    """Free what belongs to capsules that are gone. Called whenever the package is used."""
    while _dropped:
        with _lock:
            structure = _owned.pop(_dropped.popleft()) if _dropped else None
        if structure is not None:
            structure.free()
