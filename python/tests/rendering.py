"""Arrow values in the text form of the Java-written tables' expected rows (tests/tables/README.md)."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa


def render_rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns[name] = [value for chunk in column.chunks for value in render(chunk)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def render(array: pa.Array) -> list[Any]:
    """The text of each value; None for null."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return _each(
                array.storage,
                lambda raw: f"{raw.hex()[:8]}-{raw.hex()[8:12]}-{raw.hex()[12:16]}-{raw.hex()[16:20]}-{raw.hex()[20:]}",
            )
        return render(array.storage)
    if pa.types.is_struct(kind):
        fields = [render(array.field(i)) for i in range(kind.num_fields)]
        names = [field.name for field in kind]
        return [
            {name: values[row] for name, values in zip(names, fields, strict=True)} if array[row].is_valid else None
            for row in range(len(array))
        ]
    if pa.types.is_map(kind):
        return [_map(scalar) for scalar in array]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [render(scalar.values) if scalar.is_valid else None for scalar in array]
    if pa.types.is_timestamp(kind):
        return _each(array.cast(pa.int64()), lambda ticks: _timestamp(ticks, kind))
    if pa.types.is_time(kind):
        return _each(array.cast(pa.int64()), lambda micros: _time(micros, 6))
    if pa.types.is_date(kind):
        return _each(array, lambda date: date.isoformat())
    if pa.types.is_float32(kind):
        return _each(array, lambda value: "0x" + _bits(value, ">f", "7fc00000"))
    if pa.types.is_float64(kind):
        return _each(array, lambda value: "0x" + _bits(value, ">d", "7ff8000000000000"))
    if pa.types.is_boolean(kind):
        return _each(array, lambda value: "true" if value else "false")
    if pa.types.is_decimal(kind):
        return _each(array, _decimal)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _each(array, lambda value: value.hex())
    return _each(array, str)


def _each(array: pa.Array, text: Any) -> list[str | None]:
    return [None if value is None else text(value) for value in array.to_pylist()]


def _map(scalar: pa.MapScalar) -> list[Any] | None:
    if not scalar.is_valid:
        return None
    entries = scalar.values
    pairs = [list(pair) for pair in zip(render(entries.field(0)), render(entries.field(1)), strict=True)]
    return sorted(pairs, key=lambda pair: json.dumps(pair[0], ensure_ascii=False))


def _bits(value: float, form: str, nan: str) -> str:
    return nan if value != value else struct.pack(form, value).hex()


def _decimal(value: Decimal) -> str:
    return format(value, "f")


def _time(ticks: int, digits: int) -> str:
    seconds, fraction = divmod(ticks, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def _timestamp(ticks: int, kind: pa.TimestampType) -> str:
    import datetime

    digits = {"us": 6, "ns": 9}[kind.unit]
    days, rest = divmod(ticks, 86400 * 10**digits)
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    return f"{date.isoformat()}T{_time(rest, digits)}{'Z' if kind.tz else ''}"
