"""Writes engine/expr/testdata/pyiceberg.json: what pyiceberg's row filters say.

For tables of a few rows that hold the values that matter (null, NaN, zeros,
limits), and for every operator and some combinations, the file records which
rows pyiceberg's scan returns and which rows its delete removes. Both come from
pyiceberg's own expression_to_pyarrow and _expression_to_complementary_pyarrow,
run on Arrow tables. Run it by hand with the pyiceberg version under test:

    python tests/tools/gen_expr_oracle.py

The form of the file, one JSON object:

    {"pyiceberg": "0.12.0", "tables": [
      {"name": "...",
       "columns": [{"name", "id", "type", "required", "values": [literals of the wire form, null]}],
       "absent": [ids of the columns that the data file does not have],
       "cases": [{"filter": [nodes of the wire form], "scan": [rows returned], "delete": [rows removed],
                 "given": {"type", "value"}}]}]}

The filter is the bound one, whose literals have the types of their columns;
"given" is the literal of a comparison as it was before, where there was one.
"""

from __future__ import annotations

import itertools
import json
import math
import pathlib
import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyiceberg
from pyiceberg import expressions as ex
from pyiceberg.expressions import literals as lits
from pyiceberg.expressions.literals import literal
from pyiceberg.expressions.visitors import bind, translate_column_names
from pyiceberg.io.pyarrow import (
    _expression_to_complementary_pyarrow,
    expression_to_pyarrow,
    schema_to_pyarrow,
)
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

OUT = pathlib.Path(__file__).parents[2] / "engine" / "expr" / "testdata" / "pyiceberg.json"

OPS: dict[type, str] = {
    ex.BoundIsNull: "is-null",
    ex.BoundNotNull: "not-null",
    ex.BoundIsNaN: "is-nan",
    ex.BoundNotNaN: "not-nan",
    ex.BoundEqualTo: "eq",
    ex.BoundNotEqualTo: "not-eq",
    ex.BoundLessThan: "lt",
    ex.BoundLessThanOrEqual: "lt-eq",
    ex.BoundGreaterThan: "gt",
    ex.BoundGreaterThanOrEqual: "gt-eq",
    ex.BoundStartsWith: "starts-with",
    ex.BoundNotStartsWith: "not-starts-with",
    ex.BoundIn: "in",
    ex.BoundNotIn: "not-in",
}


def number(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def wire_value(value: Any, typ: PrimitiveType) -> Any:
    """A value in the wire form of its column's type, which is the type's name up to its parameters."""
    match value:
        case None | bool() | str():
            return value
        case float():
            return number(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex()
        case date() | datetime() | time():
            return literal(value).to(typ).value
    return value


def wire_type(typ: PrimitiveType) -> str:
    return re.split(r"[(\[]", str(typ))[0]


def wire(expr: ex.BooleanExpression) -> list[dict[str, Any]]:
    """The wire form of a bound expression."""
    nodes: list[dict[str, Any]] = []

    def add(node: dict[str, Any]) -> int:
        nodes.append(node)
        return len(nodes) - 1

    def visit(e: ex.BooleanExpression) -> int:
        match e:
            case ex.AlwaysTrue():
                return add({"op": "true"})
            case ex.AlwaysFalse():
                return add({"op": "false"})
            case ex.And() | ex.Or():
                args = [visit(e.left), visit(e.right)]
                return add({"op": "and" if isinstance(e, ex.And) else "or", "args": args})
            case ex.Not():
                return add({"op": "not", "args": [visit(e.child)]})
        field = e.term.ref().field
        node: dict[str, Any] = {"op": OPS[type(e)], "ref": field.name}
        if isinstance(e, ex.BoundSetPredicate):
            node["type"] = wire_type(field.field_type)
            node["values"] = [wire_value(v, field.field_type) for v in sorted(e.value_set)]
        elif isinstance(e, ex.BoundLiteralPredicate):
            node["type"], node["value"] = wire_type(field.field_type), wire_value(e.literal.value, field.field_type)
        return add(node)

    visit(expr)
    return nodes


def given(expr: ex.BooleanExpression) -> dict[str, Any]:
    """The literal of a comparison before it is bound, in the wire form."""
    if not isinstance(expr, ex.LiteralPredicate):
        return {}
    types = {
        lits.BooleanLiteral: "boolean",
        lits.LongLiteral: "long",
        lits.DoubleLiteral: "double",
        lits.DecimalLiteral: "decimal",
        lits.DateLiteral: "date",
        lits.TimeLiteral: "time",
        lits.TimestampLiteral: "timestamp",
        lits.StringLiteral: "string",
        lits.BinaryLiteral: "binary",
    }
    value = expr.literal.value
    return {"given": {"type": types[type(expr.literal)], "value": wire_value(value, StringType())}}


class Table:
    def __init__(
        self, name: str, columns: list[tuple[str, PrimitiveType, bool, list[Any]]], absent: tuple[str, ...] = ()
    ):
        self.name = name
        self.columns = columns
        self.absent = absent
        fields = [NestedField(i + 1, n, t, required=r) for i, (n, t, r, _) in enumerate(columns)]
        self.schema = Schema(*fields)
        self.file_schema = Schema(*(f for f in fields if f.name not in absent))
        self.data = pa.table(
            [pa.array(v, schema_to_pyarrow(t)) for _, t, _, v in columns],
            schema=pa.schema([pa.field(n, schema_to_pyarrow(t), nullable=not r) for n, t, r, _ in columns]),
        ).append_column("row_number", pa.array(range(len(columns[0][3]))))

    def case(self, expr: ex.BooleanExpression) -> dict[str, Any]:
        bound = bind(self.schema, expr, case_sensitive=True)
        in_file = bind(self.file_schema, translate_column_names(bound, self.file_schema), case_sensitive=True)
        kept = self.rows(_expression_to_complementary_pyarrow(bound, self.schema))
        return {
            "filter": wire(bound),
            "scan": self.rows(expression_to_pyarrow(in_file, self.file_schema)),
            "delete": [i for i in range(len(self.data)) if i not in kept],
            **given(expr),
        }

    def rows(self, expression: Any) -> list[int]:
        return self.data.filter(expression)["row_number"].to_pylist()

    def to_json(self, cases: list[Any]) -> dict[str, Any]:
        return {
            "name": self.name,
            "columns": [
                {
                    "name": n,
                    "id": i + 1,
                    "type": str(t),
                    "required": r,
                    "values": [wire_value(x, t) for x in v],
                }
                for i, (n, t, r, v) in enumerate(self.columns)
            ],
            "absent": [i + 1 for i, (n, _, _, _) in enumerate(self.columns) if n in self.absent],
            "cases": [self.case(c) for c in cases],
        }


COMPARISONS = (ex.EqualTo, ex.NotEqualTo, ex.LessThan, ex.LessThanOrEqual, ex.GreaterThan, ex.GreaterThanOrEqual)
TEXT = (ex.StartsWith, ex.NotStartsWith)


def predicates(column: str, literals: list[Any], text: bool = False, unary: bool = True) -> list[ex.BooleanExpression]:
    out: list[ex.BooleanExpression] = []
    if unary:
        out += [cls(column) for cls in (ex.IsNull, ex.NotNull, ex.IsNaN, ex.NotNaN)]
    out += [cls(column, v) for cls in COMPARISONS + (TEXT if text else ()) for v in literals]
    out += [cls(column, tuple(literals)) for cls in (ex.In, ex.NotIn)]
    out += [cls(column, tuple(literals[:2])) for cls in (ex.In, ex.NotIn)]
    return out + [ex.Not(e) for e in out]


NAN, INF = float("nan"), float("inf")
FLOATS = [None, NAN, -INF, -1.5, -0.0, 0.0, 0.1, 1.5, INF]


def main() -> None:
    tables: list[dict[str, Any]] = []

    def single(typ: PrimitiveType, values: list[Any], literals: list[Any], text: bool = False) -> None:
        table = Table(str(typ), [("x", typ, False, values)])
        tables.append(table.to_json(predicates("x", literals, text)))

    single(BooleanType(), [None, False, True], [False, True])
    single(IntegerType(), [None, -(2**31), -1, 0, 1, 5, 2**31 - 1], [0, 5, 2**31, -(2**31) - 1])
    single(LongType(), [None, -(2**63), -1, 0, 5, 2**63 - 1], [0, 5, 2**63, -(2**63) - 1])
    single(FloatType(), FLOATS, [0.1, 0.0, -0.0, 1.5, 3, 1e39, -1e39])
    single(DoubleType(), FLOATS, [0.1, 0.0, -0.0, 1.5, 2**70, INF, -INF])
    single(
        DecimalType(9, 2),
        [None, Decimal("-1.00"), Decimal("0.00"), Decimal("1.50"), Decimal("2.00")],
        [Decimal("1.50"), Decimal("0.00"), 2, 1.499],
    )
    single(
        DateType(),
        [None, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
        [date(1970, 1, 1), "2024-02-29", 19],
    )
    single(TimeType(), [None, time(0), time(12, 30), time(23, 59, 59, 999999)], [time(12, 30), "23:59:59.999999"])
    stamps = [None, datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 4)]
    single(TimestampType(), stamps, [datetime(1970, 1, 1), "2024-02-29T01:02:03.000004"])
    single(TimestamptzType(), stamps, ["1970-01-01T00:00:00+00:00", "2024-02-29T02:02:03.000004+01:00"])
    single(StringType(), [None, "", "a", "ab", "abc", "b", "é", "\U0001f600", "￿"], ["ab", "", "é", "a"], text=True)
    single(BinaryType(), [None, b"", b"\x00", b"ab", b"\xff"], [b"ab", b"\x00", b""])
    single(FixedType(2), [None, b"\x00\x00", b"ab", b"\xff\xff"], [b"ab", b"\x00\x00"])

    # Combinations: three-valued logic, and what a delete keeps.
    ints = [None, 1, 2]
    floats = [None, NAN, 1.0, 2.0]
    grid = list(itertools.product(ints, floats, ints))
    pair = Table(
        "combinations",
        [
            ("x", IntegerType(), False, [g[0] for g in grid]),
            ("f", DoubleType(), False, [g[1] for g in grid]),
            ("y", IntegerType(), False, [g[2] for g in grid]),
            ("r", IntegerType(), True, [(i % 3) + 1 for i in range(len(grid))]),
        ],
    )
    leaves = [
        ex.EqualTo("x", 1),
        ex.NotEqualTo("x", 1),
        ex.In("x", (1, 3)),
        ex.NotIn("x", (1, 3)),
        ex.IsNull("x"),
        ex.GreaterThan("f", 1.0),
        ex.NotEqualTo("f", 1.0),
        ex.NotIn("f", (1.0, 3.0)),
        ex.IsNaN("f"),
        ex.NotNull("f"),
        ex.LessThan("y", 2),
        ex.EqualTo("r", 2),
        ex.IsNull("r"),
        ex.LessThan("x", 2**40),
        ex.EqualTo("y", 2**40),
    ]
    cases: list[ex.BooleanExpression] = [ex.AlwaysTrue(), ex.AlwaysFalse(), *leaves]
    for a, b in itertools.combinations(leaves, 2):
        cases += [ex.And(a, b), ex.Or(a, b), ex.Not(ex.And(a, b)), ex.Or(ex.Not(a), b)]
    cases += [
        ex.Or(ex.And(ex.EqualTo("x", 1), ex.Not(ex.GreaterThan("f", 1.0))), ex.IsNull("y")),
        ex.Not(ex.Or(ex.And(ex.NotEqualTo("x", 1), ex.NotNaN("f")), ex.Not(ex.EqualTo("y", 2)))),
        ex.And(ex.Or(ex.EqualTo("x", 1), ex.IsNull("x")), ex.Or(ex.IsNaN("f"), ex.EqualTo("f", 2.0))),
        ex.Or(*(ex.And(ex.EqualTo("x", i % 3), ex.EqualTo("y", i)) for i in range(12))),
        ex.Not(ex.Or(*(ex.And(ex.EqualTo("x", i % 3), ex.EqualTo("y", i)) for i in range(12)))),
        ex.Or(*(ex.EqualTo("x", i) for i in (1, 5, 9))),
        ex.And(*(ex.NotEqualTo("x", i) for i in (1, 5, 9))),
        ex.Not(ex.And(*(ex.NotEqualTo("f", i) for i in (1.0, 5.0, 9.0)))),
    ]
    tables.append(pair.to_json(cases))

    # A file that was written before the column was added.
    old = Table(
        "absent",
        [
            ("x", IntegerType(), False, [1, 2]),
            ("n", DoubleType(), False, [None, None]),
            ("s", StringType(), False, [None, None]),
        ],
        absent=("n", "s"),
    )
    absent = predicates("n", [1.0, 2.0]) + predicates("s", ["a", "b"], text=True)
    absent += [ex.Or(ex.EqualTo("x", 1), e) for e in absent] + [ex.Not(ex.And(ex.EqualTo("x", 1), e)) for e in absent]
    tables.append(old.to_json(absent))

    tables_text = ",\n".join(
        "{"
        + ",\n".join(
            [
                json.dumps({k: v for k, v in t.items() if k != "cases"})[1:-1],
                '"cases": [\n' + ",\n".join(json.dumps(c) for c in t["cases"]) + "\n]",
            ]
        )
        + "}"
        for t in tables
    )
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f'{{"pyiceberg": "{pyiceberg.__version__}", "tables": [\n{tables_text}\n]}}\n')


if __name__ == "__main__":
    main()
