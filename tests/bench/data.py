"""Rows of the benchmarks, the same in every run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

ROWS = 10_000_000
ROW_GROUP = 1_000_000
SEED = 7

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("d", pa.float64()),
        ("dec", pa.decimal128(12, 2)),
        ("ts", pa.timestamp("us")),
        ("cat", pa.string()),
        ("i32", pa.int32()),
        ("dt", pa.date32()),
    ]
)


def base_rows() -> pa.Table:
    """10 M rows: sequential ids, 16 random hexadecimal digits, doubles with 2 % nulls, decimals,
    timestamps, 40-byte strings of 1,000 values, ints, dates; about 1.1 GB in memory."""
    rng = np.random.default_rng(SEED)
    return pa.concat_tables(rows(rng, start, ROW_GROUP) for start in range(0, ROWS, ROW_GROUP))


def rows(rng: np.random.Generator, start: int, n: int) -> pa.Table:
    """`n` of the base rows, whose ids begin at `start`."""
    ids = np.arange(start, start + n, dtype=np.int64)
    categories = pa.array([f"category-{i:04d}-".ljust(40, chr(97 + i % 26)) for i in range(1000)])
    cents = np.zeros((n, 2), dtype=np.int64)
    cents[:, 0] = rng.integers(0, 10**9, size=n)
    return pa.table(
        [
            pa.array(ids),
            hex_strings(rng, n),
            pa.array(rng.normal(size=n), mask=rng.random(n) < 0.02),
            pa.Array.from_buffers(pa.decimal128(12, 2), n, [None, pa.py_buffer(cents.tobytes())]),
            pa.array(1_700_000_000_000_000 + ids * 1000 + rng.integers(0, 1000, size=n)).cast(pa.timestamp("us")),
            categories.take(pa.array(rng.integers(0, 1000, size=n))),
            pa.array(rng.integers(0, 2**20, size=n).astype(np.int32)),
            pa.array((18000 + rng.integers(0, 1500, size=n)).astype(np.int32)).cast(pa.date32()),
        ],
        schema=SCHEMA,
    )


def hex_strings(rng: np.random.Generator, n: int) -> pa.Array:
    """`n` random strings of 16 hexadecimal digits."""
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    words = rng.integers(0, 2**63, size=n, dtype=np.uint64)
    text = np.empty((n, 16), dtype=np.uint8)
    for digit in range(16):
        text[:, digit] = digits[(words >> np.uint64(4 * digit)).astype(np.uint8) & 15]
    offsets = np.arange(0, 16 * n + 1, 16, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text.tobytes()))
