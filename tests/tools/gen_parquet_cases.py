"""Writes the Parquet files under engine/pq/testdata and what they hold.

Each case is a Parquet file written by pyarrow; what pyarrow reads from it is
stored as an Arrow IPC file, shared by the cases that hold the same rows.
cases.json lists them. Run with an interpreter that has pyarrow:

    python tests/tools/gen_parquet_cases.py engine/pq/testdata

The files are part of the repository, so that the Go tests need no Python.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import io
import json
import pathlib
import random
import sys

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

ROWS = 300
ROW_GROUP = 120
rng = random.Random(20240229)


def ident(field: pa.Field, field_id: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(field_id)})


def words(n: int) -> list[str]:
    alphabet = "abcdefghijklmnopqrstuvwxyz äöü✓𝄞"
    return [
        "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 3, 8, 15, 16, 17, 31, 33, 70]))) for _ in range(n)
    ]


def decimals(digits: int, scale: int, n: int) -> list[decimal.Decimal]:
    with decimal.localcontext(decimal.Context(prec=50)):
        special = [0, 1, -1, 10**digits - 1, -(10**digits) + 1]
        return [
            decimal.Decimal(
                rng.choice(special) if rng.random() < 0.2 else rng.randrange(-(10**digits) + 1, 10**digits)
            ).scaleb(-scale)
            for _ in range(n)
        ]


def ints(bits: int, signed: bool, n: int) -> list[int]:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return [
        rng.choice([low, high, 0, 1])
        if rng.random() < 0.1
        else rng.randint(low, high)
        if rng.random() < 0.5
        else rng.randint(0, 20)
        for _ in range(n)
    ]


def floats(n: int) -> list[float]:
    special = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.5]
    return [rng.choice(special) if rng.random() < 0.3 else rng.uniform(-1e6, 1e6) for _ in range(n)]


def column(typ: pa.DataType, n: int) -> list:
    """Values of a type without nulls."""
    if pa.types.is_boolean(typ):
        return [rng.random() < 0.4 for _ in range(n)]
    if pa.types.is_integer(typ):
        return ints(typ.bit_width, pa.types.is_signed_integer(typ), n)
    if pa.types.is_floating(typ):
        return floats(n)
    if pa.types.is_decimal(typ):
        return decimals(typ.precision, typ.scale, n)
    if pa.types.is_date(typ):
        return [datetime.date(1970, 1, 1) + datetime.timedelta(days=rng.randint(-40000, 40000)) for _ in range(n)]
    if pa.types.is_time(typ) or pa.types.is_timestamp(typ):
        unit = {"ms": 10**3, "us": 10**6, "ns": 10**9}[typ.unit]
        most = 86400 * unit if pa.types.is_time(typ) else 4 * 10**9 * unit
        return (
            pa.array(
                [rng.randrange(0 if pa.types.is_time(typ) else -most, most) for _ in range(n)],
                pa.int64() if typ.bit_width == 64 else pa.int32(),
            )
            .cast(typ)
            .to_pylist()
            if typ.unit != "ns"
            else [rng.randrange(0, min(most, 2**62)) for _ in range(n)]
        )
    if pa.types.is_string(typ):
        return words(n)
    if pa.types.is_fixed_size_binary(typ):
        return [rng.randbytes(typ.byte_width) for _ in range(n)]
    return [w.encode() + b"\x00\xff" for w in words(n)]


TYPES = {
    "bool": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u16": pa.uint16(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f16": pa.float16(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "date": pa.date32(),
    "time_ms": pa.time32("ms"),
    "time_us": pa.time64("us"),
    "time_ns": pa.time64("ns"),
    "ts_ms": pa.timestamp("ms"),
    "ts_us": pa.timestamp("us"),
    "tz_us": pa.timestamp("us", "UTC"),
    "ts_ns": pa.timestamp("ns"),
    "dec5": pa.decimal128(5, 2),
    "dec15": pa.decimal128(15, 3),
    "dec38": pa.decimal128(38, 10),
    "str": pa.string(),
    "bin": pa.binary(),
    "fix7": pa.binary(7),
    "uuid": pa.binary(16),
}


def flat(nulls: str, names: list[str] | None = None, few: bool = False) -> pa.Table:
    """All primitive types. nulls: none (required columns), some, runs, most or all."""
    fields, arrays = [], []
    for i, name in enumerate(names or TYPES):
        typ = TYPES[name]
        values = column(typ, ROWS)
        if few:
            values = [rng.choice(values[:9]) for _ in values]
        if nulls == "some":
            values = [None if rng.random() < 0.2 else v for v in values]
        elif nulls == "runs":
            values = [None if (j // 37) % 2 else v for j, v in enumerate(values)]
        elif nulls == "most":
            values = [v if rng.random() < 0.05 else None for v in values]
        elif nulls == "all":
            values = [None] * ROWS
        fields.append(ident(pa.field(name, typ, nullable=nulls != "none"), i + 1))
        arrays.append(pa.array(values, typ))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def maybe(value, chance: float = 0.2):
    return None if rng.random() < chance else value


def nested() -> pa.Table:
    """Structs, lists and maps, nested and with nulls and empties at each level."""

    def listing(make, most: int = 4):
        return [make() for _ in range(rng.randint(0, most))]

    def number():
        return rng.randint(-1000, 1000)

    def word():
        return rng.choice(["", "a", "bc", "dictionary entry", "x" * 40])

    def fid(name, typ, i, nullable=True):
        return ident(pa.field(name, typ, nullable), i)

    inner = pa.struct([fid("a", pa.int32(), 11), fid("b", pa.string(), 12)])
    required = pa.struct([fid("a", pa.int64(), 21, False), fid("s", pa.struct([fid("x", pa.float64(), 23)]), 22)])
    schema = pa.schema(
        [
            fid("st", inner, 1),
            fid("req", required, 2, False),
            fid("li", pa.list_(fid("element", pa.int64(), 31)), 3),
            fid("lreq", pa.list_(fid("element", pa.string(), 41, False)), 4, False),
            fid(
                "ls",
                pa.list_(
                    fid(
                        "element",
                        pa.struct([fid("p", pa.int32(), 52), fid("q", pa.list_(fid("element", pa.string(), 54)), 53)]),
                        51,
                    )
                ),
                5,
            ),
            fid("ll", pa.list_(fid("element", pa.list_(fid("element", pa.bool_(), 62)), 61)), 6),
            fid("map", pa.map_(fid("key", pa.string(), 71, False), fid("value", pa.int32(), 72)), 7),
            fid(
                "mm",
                pa.map_(
                    fid("key", pa.int32(), 81, False),
                    fid(
                        "value",
                        pa.struct(
                            [
                                fid("d", pa.decimal128(9, 2), 83),
                                fid(
                                    "m", pa.map_(fid("key", pa.string(), 85, False), fid("value", pa.date32(), 86)), 84
                                ),
                            ]
                        ),
                        82,
                    ),
                ),
                8,
            ),
            fid(
                "deep",
                pa.struct(
                    [
                        fid(
                            "one",
                            pa.struct(
                                [
                                    fid(
                                        "two",
                                        pa.struct(
                                            [
                                                fid("l", pa.list_(fid("element", pa.binary(3), 95)), 94),
                                                fid("v", pa.timestamp("us", "UTC"), 96),
                                            ]
                                        ),
                                        93,
                                    )
                                ]
                            ),
                            92,
                        )
                    ]
                ),
                9,
            ),
        ]
    )
    rows = []
    for _ in range(ROWS):
        rows.append(
            {
                "st": maybe({"a": maybe(number()), "b": maybe(word())}),
                "req": {"a": number(), "s": maybe({"x": maybe(1.5 * number())})},
                "li": maybe(listing(lambda: maybe(number()))),
                "lreq": listing(word),
                "ls": maybe(listing(lambda: maybe({"p": maybe(number()), "q": maybe(listing(lambda: maybe(word())))}))),
                "ll": maybe(listing(lambda: maybe(listing(lambda: maybe(rng.random() < 0.5))))),
                "map": maybe([(w, maybe(number())) for w in listing(word)]),
                "mm": maybe(
                    [
                        (
                            number(),
                            maybe(
                                {
                                    "d": maybe(decimal.Decimal(number()).scaleb(-2)),
                                    "m": maybe([(w, maybe(datetime.date(2020, 1, 1))) for w in listing(word)]),
                                }
                            ),
                        )
                        for _ in range(rng.randint(0, 3))
                    ]
                ),
                "deep": maybe(
                    {
                        "one": maybe(
                            {
                                "two": maybe(
                                    {
                                        "l": maybe(listing(lambda: maybe(rng.randbytes(3)))),
                                        "v": maybe(datetime.datetime(2021, 2, 3, 4, 5, 6, 7, datetime.timezone.utc)),
                                    }
                                )
                            }
                        )
                    }
                ),
            }
        )
    return pa.Table.from_pylist(rows, schema)


class Writer:
    def __init__(self, target: pathlib.Path):
        self.target = target
        self.cases: list[dict[str, str]] = []
        self.expected: dict[str, str] = {}

    def case(self, name: str, table: pa.Table, **options) -> None:
        options = {
            "row_group_size": ROW_GROUP,
            "data_page_size": 256,
            "write_batch_size": 24,
            "compression": "none",
            "store_schema": False,
            "write_statistics": True,
            **options,
        }
        path = self.target / f"{name}.parquet"
        pq.write_table(table, path, **options)
        got = pq.read_table(path, coerce_int96_timestamp_unit="us", arrow_extensions_enabled=False)
        sink = io.BytesIO()
        with ipc.new_file(sink, got.schema, options=ipc.IpcWriteOptions(compression="zstd")) as w:
            w.write_table(got.combine_chunks())
        digest = hashlib.sha256(sink.getvalue()).hexdigest()
        if digest not in self.expected:
            self.expected[digest] = f"{name}.arrow"
            (self.target / f"{name}.arrow").write_bytes(sink.getvalue())
        self.cases.append({"file": path.name, "expected": self.expected[digest]})


def main() -> None:
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for old in [*target.glob("*.parquet"), *target.glob("*.arrow")]:
        old.unlink()
    w = Writer(target)

    some, runs, none, few = flat("some"), flat("runs"), flat("none"), flat("some", few=True)
    w.case("plain_v1", some, use_dictionary=False, data_page_version="1.0")
    w.case("plain_v2", some, use_dictionary=False, data_page_version="2.0")
    w.case("dictionary_v1", few, data_page_version="1.0")
    w.case("dictionary_v2", few, data_page_version="2.0", compression="zstd")
    w.case("required_v1", none, use_dictionary=False)
    w.case("required_v2", none, data_page_version="2.0", write_page_index=True)
    w.case("runs_v1", runs, use_dictionary=False, write_page_index=True, compression="snappy")
    w.case("most_null", flat("most"), data_page_version="2.0", write_page_index=True)
    w.case("all_null", flat("all"), compression="zstd")
    w.case("fallback", some, dictionary_pagesize_limit=128)
    w.case("decimal_integers", flat("some", ["dec5", "dec15", "dec38"]), store_decimal_as_integer=True)
    w.case("int96", flat("some", ["ts_us", "ts_ms"]), use_deprecated_int96_timestamps=True)

    several = flat("some", ["i32", "str", "dec15", "bool", "f64"])
    for codec in ["snappy", "gzip", "zstd", "lz4", "brotli"]:
        for version in ["1.0", "2.0"]:
            w.case(
                f"{codec}_v{version[0]}",
                several,
                compression=codec,
                data_page_version=version,
                write_page_checksum=version == "1.0",
            )
    w.case("one_page", several, data_page_size=1 << 20, write_batch_size=1024, row_group_size=ROWS, compression="zstd")

    def encoded(encoding: str, names: list[str], nulls: str = "some"):
        return flat(nulls, names), {"use_dictionary": False, "column_encoding": dict.fromkeys(names, encoding)}

    for nulls in ["none", "some"]:
        for name, encoding, names in [
            (
                "delta",
                "DELTA_BINARY_PACKED",
                ["i8", "i16", "i32", "i64", "u32", "u64", "date", "time_us", "ts_us", "ts_ms"],
            ),
            ("delta_length", "DELTA_LENGTH_BYTE_ARRAY", ["str", "bin"]),
            ("delta_bytes", "DELTA_BYTE_ARRAY", ["str", "bin", "fix7", "uuid", "dec38"]),
            (
                "split",
                "BYTE_STREAM_SPLIT",
                ["f32", "f64", "i32", "i64", "i8", "f16", "fix7", "dec5", "dec15", "dec38", "ts_us", "date"],
            ),
            ("rle", "RLE", ["bool"]),
        ]:
            table, options = encoded(encoding, names, nulls)
            w.case(f"{name}_{nulls}", table, data_page_version="2.0" if nulls == "some" else "1.0", **options)
    # Delta blocks of full size, and values that only large differences reach.
    big = pa.table(
        {
            "i32": pa.array(ints(32, True, 3000), pa.int32()),
            "i64": pa.array(ints(64, True, 3000), pa.int64()),
            "up": pa.array(range(0, 9000, 3), pa.int64()),
        }
    )
    w.case(
        "delta_long",
        big,
        use_dictionary=False,
        column_encoding=dict.fromkeys(big.column_names, "DELTA_BINARY_PACKED"),
        data_page_size=1 << 20,
        row_group_size=3000,
        write_batch_size=1024,
        compression="zstd",
    )
    integers = flat("some", ["dec5", "dec15"])
    w.case(
        "delta_decimals",
        integers,
        store_decimal_as_integer=True,
        use_dictionary=False,
        column_encoding=dict.fromkeys(["dec5", "dec15"], "DELTA_BINARY_PACKED"),
    )

    tree = nested()
    w.case("nested_v1", tree, compression="zstd")
    w.case("nested_v2", tree, data_page_version="2.0", compression="zstd", use_dictionary=False)
    w.case("nested_index", tree, write_page_index=True, compression="zstd", data_page_size=128, write_batch_size=8)
    w.case("nested_two_level", tree.select(["li", "st", "lreq"]), use_compliant_nested_type=False, compression="zstd")

    w.case("no_rows", some.slice(0, 0))
    w.case("one_row", some.slice(7, 1))
    w.case("no_rows_nested", tree.slice(0, 0))
    filtered = flat("some", ["i32", "i64", "f32", "f64", "str", "bin", "date", "ts_us", "uuid"])
    w.case(
        "bloom",
        filtered,
        bloom_filter_options={n: {"ndv": 100, "fpp": 0.01} for n in filtered.column_names},
        row_group_size=100,
    )
    # Ascending values, so that statistics of pages and row groups tell rows apart.
    ascending = pa.table(
        {
            "id": pa.array(range(0, 4800, 4), pa.int64()),
            "word": pa.array([f"word {i // 3:04}" for i in range(1200)]),
            "payload": pa.array([f"{i:040}" if i % 50 else None for i in range(1200)]),
            "list": pa.array([[i] * (i % 4) for i in range(1200)], pa.list_(pa.int32())),
        }
    ).cast(
        pa.schema(
            [
                ident(pa.field("id", pa.int64(), False), 1),
                ident(pa.field("word", pa.string()), 2),
                ident(pa.field("payload", pa.string()), 3),
                ident(pa.field("list", pa.list_(ident(pa.field("element", pa.int32()), 5))), 4),
            ]
        )
    )
    w.case(
        "ascending",
        ascending,
        row_group_size=400,
        data_page_size=400,
        write_batch_size=20,
        write_page_index=True,
        use_dictionary=False,
    )
    w.case(
        "ascending_dictionary",
        ascending,
        row_group_size=400,
        data_page_size=100,
        write_batch_size=20,
        write_page_index=True,
        data_page_version="2.0",
        compression="zstd",
    )
    (target / "cases.json").write_text(json.dumps(w.cases, indent=1) + "\n")
    print(len(w.cases), "cases,", sum(p.stat().st_size for p in target.iterdir()), "bytes")


if __name__ == "__main__":
    main()
