"""Sizes in bytes, as people write them: 1048576, "64 KiB", "1.5GB"."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_LARGEST = (1 << 63) - 1

ALLOWED = 'a whole number of bytes below 8 EiB or a text such as "512MiB" or "50GB" (KB, MB, GB, TB are powers of ten, KiB, MiB, GiB, TiB powers of two)'


def parse_size(value: object) -> int:
    """The number of bytes that value means; ValueError says what is allowed."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(ALLOWED)
    if isinstance(value, int):
        size = value
    else:
        match = _SIZE.fullmatch(value)
        unit = _UNITS.get(match[2].lower()) if match else None
        if match is None or unit is None:
            raise ValueError(ALLOWED)
        exact = Decimal(match[1]) * unit
        if exact != exact.to_integral_value():
            raise ValueError(ALLOWED)
        size = int(exact)
    if not 0 <= size <= _LARGEST:
        raise ValueError(ALLOWED)
    return size


def format_size(size: int) -> str:
    """The size in the largest power of two that keeps it a round number, or else with one decimal."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size // factor} {unit}" if size % factor == 0 else f"{size / factor:.1f} {unit}"
    return f"{size} B"
