"""pyiceberg expressions in the wire form."""

from __future__ import annotations

import datetime
import functools
import json
import sys
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyiceberg import expressions as e
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from icebergexec._expressions import parse, to_wire

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "l", LongType()),
    NestedField(3, "f", FloatType()),
    NestedField(4, "d", DoubleType()),
    NestedField(5, "s", StringType()),
    NestedField(6, "dec", DecimalType(9, 2)),
    NestedField(7, "day", DateType()),
    NestedField(8, "ts", TimestampType()),
    NestedField(9, "tz", TimestamptzType()),
    NestedField(10, "u", UUIDType()),
    NestedField(11, "fix", FixedType(3)),
    NestedField(12, "b", BinaryType()),
    NestedField(13, "st", StructType(NestedField(14, "x", IntegerType()))),
    NestedField(15, "r", LongType(), required=True),
    NestedField(16, "t", TimeType()),
)


def wire(expression: e.BooleanExpression | str, **options: Any) -> Any:
    raw = to_wire(parse(expression), **options)
    return None if raw is None else json.loads(raw.text)


@pytest.mark.parametrize(
    ("expression", "node"),
    [
        (e.IsNull("a"), {"op": "is-null", "ref": "a"}),
        (e.NotNull("a"), {"op": "not-null", "ref": "a"}),
        (e.IsNaN("a"), {"op": "is-nan", "ref": "a"}),
        (e.NotNaN("a"), {"op": "not-nan", "ref": "a"}),
        (e.EqualTo("a", 1), {"op": "eq", "ref": "a", "type": "long", "value": 1}),
        (e.NotEqualTo("a", "x"), {"op": "not-eq", "ref": "a", "type": "string", "value": "x"}),
        (e.LessThan("a", 1.5), {"op": "lt", "ref": "a", "type": "double", "value": 1.5}),
        (e.LessThanOrEqual("a", float("inf")), {"op": "lt-eq", "ref": "a", "type": "double", "value": "Infinity"}),
        (e.GreaterThan("a", float("-inf")), {"op": "gt", "ref": "a", "type": "double", "value": "-Infinity"}),
        (e.GreaterThanOrEqual("a", Decimal("1E+2")), {"op": "gt-eq", "ref": "a", "type": "decimal", "value": "100"}),
        (e.EqualTo("a", Decimal("-1.20")), {"op": "eq", "ref": "a", "type": "decimal", "value": "-1.20"}),
        (e.EqualTo("a", True), {"op": "eq", "ref": "a", "type": "boolean", "value": True}),
        (e.EqualTo("a", b"\x00\xff"), {"op": "eq", "ref": "a", "type": "binary", "value": "00ff"}),
        (e.EqualTo("a", datetime.date(1970, 1, 3)), {"op": "eq", "ref": "a", "type": "date", "value": 2}),
        (e.EqualTo("a", datetime.time(0, 0, 1)), {"op": "eq", "ref": "a", "type": "time", "value": 1_000_000}),
        (
            e.EqualTo("a", datetime.datetime(1970, 1, 1, 0, 0, 1)),
            {"op": "eq", "ref": "a", "type": "timestamp", "value": 1_000_000},
        ),
        (
            e.EqualTo("a", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
            {"op": "eq", "ref": "a", "type": "uuid", "value": "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        ),
        (e.StartsWith("a.b", "x"), {"op": "starts-with", "ref": "a.b", "type": "string", "value": "x"}),
        (e.NotStartsWith("a", "x"), {"op": "not-starts-with", "ref": "a", "type": "string", "value": "x"}),
        (e.AlwaysFalse(), {"op": "false"}),
    ],
)
def test_one_predicate(expression: e.BooleanExpression, node: dict[str, Any]) -> None:
    assert wire(expression) == [node]


def test_sets() -> None:
    [node] = wire(e.In("a", [1, 2, 3]))
    assert (node["op"], node["type"], sorted(node["values"])) == ("in", "long", [1, 2, 3])
    [node] = wire(e.NotIn("a", [1, 2.5]))
    assert (node["op"], node["type"], sorted(node["values"])) == ("not-in", "double", [1.0, 2.5])
    with pytest.raises(ValueError, match="of one type"):
        wire(e.In("a", [1, "x"]))


def test_always_true_is_no_filter() -> None:
    assert wire(e.AlwaysTrue()) is None


def test_text() -> None:
    assert wire("a = 1 and (b > 2 or c is null)") == [
        {"op": "eq", "ref": "a", "type": "long", "value": 1},
        {"op": "gt", "ref": "b", "type": "long", "value": 2},
        {"op": "is-null", "ref": "c"},
        {"op": "or", "args": [1, 2]},
        {"op": "and", "args": [0, 3]},
    ]


def test_operands_keep_their_order() -> None:
    a, b, c, d = (e.IsNull(name) for name in "abcd")
    nodes = wire(e.And(e.And(a, b), e.And(c, e.Not(e.Or(d, a)))))
    assert [node.get("ref") or node["op"] for node in nodes] == ["a", "b", "c", "d", "a", "or", "not", "and"]
    assert nodes[-1]["args"] == [0, 1, 2, 6]


@pytest.mark.parametrize("fold", ["left", "right"])
def test_long_chains_do_not_recurse(fold: str) -> None:
    terms = [e.EqualTo("x", i) for i in range(100_000)]
    if fold == "left":
        chain = functools.reduce(e.Or, terms)
    else:
        chain = functools.reduce(lambda done, term: e.Or(term, done), terms)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        raw = to_wire(chain)
    finally:
        sys.setrecursionlimit(limit)
    nodes = json.loads(raw.text)  # type: ignore[union-attr]
    assert len(nodes) == 100_001
    assert nodes[-1]["op"] == "or"
    assert len(nodes[-1]["args"]) == 100_000


def test_alternating_nesting_does_not_recurse() -> None:
    expression: e.BooleanExpression = e.IsNull("a")
    for i in range(5000):
        expression = (e.And if i % 2 else e.Or)(expression, e.EqualTo("x", i))
    assert len(wire(expression)) == 10_001


@pytest.mark.parametrize(
    ("expression", "node"),
    [
        (e.EqualTo("i", 7), {"op": "eq", "id": 1, "type": "int", "value": 7}),
        (e.EqualTo("i", 1 << 40), {"op": "false"}),  # beyond the type's range, by pyiceberg's rules
        (e.LessThan("i", 1 << 40), {"op": "true"}),
        (e.EqualTo("f", 1.5), {"op": "eq", "id": 3, "type": "float", "value": 1.5}),
        (e.EqualTo("d", 1), {"op": "eq", "id": 4, "type": "double", "value": 1.0}),
        (e.EqualTo("dec", "1.50"), {"op": "eq", "id": 6, "type": "decimal", "value": "1.50"}),
        (e.EqualTo("day", "1970-01-03"), {"op": "eq", "id": 7, "type": "date", "value": 2}),
        (e.EqualTo("ts", "1970-01-01T00:00:01"), {"op": "eq", "id": 8, "type": "timestamp", "value": 1_000_000}),
        (
            e.EqualTo("tz", "1970-01-01T00:00:01+00:00"),
            {"op": "eq", "id": 9, "type": "timestamptz", "value": 1_000_000},
        ),
        (e.EqualTo("t", "00:00:01"), {"op": "eq", "id": 16, "type": "time", "value": 1_000_000}),
        (
            e.EqualTo("u", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
            {"op": "eq", "id": 10, "type": "uuid", "value": "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        ),
        (e.EqualTo("fix", b"abc"), {"op": "eq", "id": 11, "type": "fixed", "value": "616263"}),
        (e.EqualTo("b", b"abc"), {"op": "eq", "id": 12, "type": "binary", "value": "616263"}),
        (e.EqualTo("st.x", 1), {"op": "eq", "id": 14, "type": "int", "value": 1}),
        (e.IsNull("r"), {"op": "false"}),
        (e.IsNaN("l"), {"op": "false"}),
        (e.NotNaN("l"), {"op": "true"}),
    ],
)
def test_bound_by_pyiceberg(expression: e.BooleanExpression, node: dict[str, Any]) -> None:
    assert wire(expression, schema=SCHEMA) == [node]


def test_binding_errors_are_pyicebergs() -> None:
    with pytest.raises(ValueError, match="Could not find field with name I"):
        wire(e.EqualTo("I", 1), schema=SCHEMA)
    assert wire(e.EqualTo("I", 1), schema=SCHEMA, case_sensitive=False)[0]["id"] == 1
    with pytest.raises(ValueError, match="Could not convert"):
        wire(e.EqualTo("i", "x"), schema=SCHEMA)
