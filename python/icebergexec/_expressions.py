"""pyiceberg expressions in the engine's wire form.

    And(And(x == 1, y > 2), z is null)
        --> [{"op": "eq", ...}, {"op": "gt", ...}, {"op": "is-null", ...}, {"op": "and", "args": [0, 1, 2]}]

The wire form is a flat list, children before parents; nested And in And and Or
in Or become one node. Nothing here recurses over the expression, so a chain of
a hundred thousand terms is as good as one of three.

Unbound predicates cross with column names and literals as they were given, and
the engine binds them. With a schema, each predicate is first bound by pyiceberg
itself: names, conversions and errors are then pyiceberg's own, and columns
cross as field ids.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from pyiceberg import expressions as e
from pyiceberg import types as t
from pyiceberg.expressions import literals as lit
from pyiceberg.expressions import parser
from pyiceberg.schema import Schema
from pyparsing import ParseException

from icebergexec._engine import Raw
from icebergexec.errors import InvalidArgumentError, UnsupportedError

_OPERATIONS: dict[type[e.BooleanExpression], str] = {
    e.AlwaysTrue: "true",
    e.AlwaysFalse: "false",
    e.And: "and",
    e.Or: "or",
    e.Not: "not",
    **dict.fromkeys((e.IsNull, e.BoundIsNull), "is-null"),
    **dict.fromkeys((e.NotNull, e.BoundNotNull), "not-null"),
    **dict.fromkeys((e.IsNaN, e.BoundIsNaN), "is-nan"),
    **dict.fromkeys((e.NotNaN, e.BoundNotNaN), "not-nan"),
    **dict.fromkeys((e.EqualTo, e.BoundEqualTo), "eq"),
    **dict.fromkeys((e.NotEqualTo, e.BoundNotEqualTo), "not-eq"),
    **dict.fromkeys((e.LessThan, e.BoundLessThan), "lt"),
    **dict.fromkeys((e.LessThanOrEqual, e.BoundLessThanOrEqual), "lt-eq"),
    **dict.fromkeys((e.GreaterThan, e.BoundGreaterThan), "gt"),
    **dict.fromkeys((e.GreaterThanOrEqual, e.BoundGreaterThanOrEqual), "gt-eq"),
    **dict.fromkeys((e.StartsWith, e.BoundStartsWith), "starts-with"),
    **dict.fromkeys((e.NotStartsWith, e.BoundNotStartsWith), "not-starts-with"),
    **dict.fromkeys((e.In, e.BoundIn), "in"),
    **dict.fromkeys((e.NotIn, e.BoundNotIn), "not-in"),
}


def _plain(value: Any) -> Any:
    return value


def _float(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _decimal(value: Any) -> str:
    return format(value, "f")


def _uuid(value: Any) -> str:
    return str(value if isinstance(value, UUID) else UUID(bytes=bytes(value)))


def _hexadecimal(value: bytes) -> str:
    return bytes(value).hex()


_Form = tuple[str, Callable[[Any], Any]]

# How a literal is written, by its own class.
_LITERALS: dict[type[lit.Literal[Any]], _Form] = {
    lit.BooleanLiteral: ("boolean", _plain),
    lit.LongLiteral: ("long", _plain),
    lit.FloatLiteral: ("float", _float),
    lit.DoubleLiteral: ("double", _float),
    lit.DateLiteral: ("date", _plain),
    lit.TimeLiteral: ("time", _plain),
    lit.TimestampLiteral: ("timestamp", _plain),
    lit.DecimalLiteral: ("decimal", _decimal),
    lit.StringLiteral: ("string", _plain),
    lit.UUIDLiteral: ("uuid", _uuid),
    lit.FixedLiteral: ("fixed", _hexadecimal),
    lit.BinaryLiteral: ("binary", _hexadecimal),
}

# How a literal is written that pyiceberg has converted to a column's type.
_COLUMNS: dict[type[t.IcebergType], _Form] = {
    t.BooleanType: ("boolean", _plain),
    t.IntegerType: ("int", _plain),
    t.LongType: ("long", _plain),
    t.FloatType: ("float", _float),
    t.DoubleType: ("double", _float),
    t.DateType: ("date", _plain),
    t.TimeType: ("time", _plain),
    t.TimestampType: ("timestamp", _plain),
    t.TimestamptzType: ("timestamptz", _plain),
    t.TimestampNanoType: ("timestamp_ns", _plain),
    t.TimestamptzNanoType: ("timestamptz_ns", _plain),
    t.DecimalType: ("decimal", _decimal),
    t.StringType: ("string", _plain),
    t.UUIDType: ("uuid", _uuid),
    t.FixedType: ("fixed", _hexadecimal),
    t.BinaryType: ("binary", _hexadecimal),
}


def parse(row_filter: str | e.BooleanExpression) -> e.BooleanExpression:
    """A filter as pyiceberg takes it: an expression, or its text."""
    if isinstance(row_filter, e.BooleanExpression):
        return row_filter
    if not isinstance(row_filter, str):
        raise InvalidArgumentError(
            f"filter is a {type(row_filter).__name__}; it must be a pyiceberg expression or its text"
        )
    try:
        return parser.parse(row_filter)
    except (ParseException, ValueError) as cause:
        where = f" from column {cause.column} on" if isinstance(cause, ParseException) else f" ({cause})"
        raise InvalidArgumentError(
            f"filter {row_filter!r}: cannot be read{where}; write for example \"id > 5 and city = 'Oslo'\""
        ) from None


def to_wire(expression: e.BooleanExpression, schema: Schema | None = None, case_sensitive: bool = True) -> Raw | None:
    """The wire form, or None for a filter that is AlwaysTrue."""
    if isinstance(expression, e.AlwaysTrue):
        return None
    nodes: list[str] = []
    waiting: list[int] = []  # indices of nodes that have no parent yet
    # A predicate is written at once; And, Or and Not after their children, which lie above them on the stack.
    stack: list[e.BooleanExpression | tuple[str, int]] = [expression]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            operation, count = item
            args = waiting[len(waiting) - count :]
            del waiting[len(waiting) - count :]
            waiting.append(len(nodes))
            nodes.append(f'{{"op":"{operation}","args":{args}}}')
        elif isinstance(item, (e.And, e.Or)):
            children = _flatten(item)
            stack.append((_OPERATIONS[type(item)], len(children)))
            stack.extend(reversed(children))
        elif isinstance(item, e.Not):
            stack.append(("not", 1))
            stack.append(item.child)
        else:
            if schema is not None and isinstance(item, e.UnboundPredicate):
                item = item.bind(schema, case_sensitive)
            waiting.append(len(nodes))
            nodes.append(_predicate(item))
    return Raw(f"[{','.join(nodes)}]")


def _flatten(root: e.And | e.Or) -> list[e.BooleanExpression]:
    """The operands, left to right, of all And below an And, or Or below an Or."""
    kind = type(root)
    operands: list[e.BooleanExpression] = []
    stack: list[e.BooleanExpression] = [root]
    while stack:
        item = stack.pop()
        if type(item) is kind:
            stack.append(item.right)
            stack.append(item.left)
        else:
            operands.append(item)
    return operands


def _predicate(predicate: e.BooleanExpression) -> str:
    operation = _OPERATIONS.get(type(predicate))
    if operation is None:
        raise InvalidArgumentError(f"filter: {type(predicate).__name__} is not an expression that the engine knows")
    node: dict[str, Any] = {"op": operation}
    form: _Form | None = None
    if isinstance(predicate, e.UnboundPredicate):
        if not isinstance(predicate.term, e.Reference):
            raise InvalidArgumentError(f"filter: {predicate.term} is not a column")
        node["ref"] = predicate.term.name
    elif isinstance(predicate, e.BoundPredicate):
        field = predicate.term.ref().field
        if not field.field_type.is_primitive:
            raise UnsupportedError(
                f'filter: column "{field.name}" is of the type {field.field_type}; the engine filters by primitive columns only'
            )
        node["id"] = field.field_id
        form = _COLUMNS.get(type(field.field_type))
    if isinstance(predicate, (e.LiteralPredicate, e.BoundLiteralPredicate)):
        node["type"], node["value"] = _literal(predicate.literal, form)
    elif isinstance(predicate, (e.SetPredicate, e.BoundSetPredicate)):
        node["type"], node["values"] = _literals(predicate.literals, form)
    return json.dumps(node, separators=(",", ":"))


def _literal(literal: lit.Literal[Any], form: _Form | None) -> tuple[str, Any]:
    name, write = form or _form(literal)
    return name, write(literal.value)


def _literals(values: Iterable[lit.Literal[Any]], form: _Form | None) -> tuple[str, list[Any]]:
    """A set's literals. They share one type in the wire form; ints beside floats or decimals become the wider."""
    values = list(values)
    if form is None:
        forms = {_form(literal) for literal in values}
        if len(forms) > 1:
            names = {name for name, _ in forms}
            if names <= {"long", "float", "double"}:
                return "double", [_float(float(literal.value)) for literal in values]
            if names <= {"long", "decimal"}:
                return "decimal", [
                    format(literal.value, "f") if not isinstance(literal.value, int) else str(literal.value)
                    for literal in values
                ]
            raise InvalidArgumentError(
                f"filter: the literals of a set must be of one type, not {' and '.join(sorted(names))}"
            )
        form = forms.pop()
    name, write = form
    return name, [write(literal.value) for literal in values]


def _form(literal: lit.Literal[Any]) -> _Form:
    form = _LITERALS.get(type(literal))
    if form is not None:
        return form
    if isinstance(literal, (lit.AboveMax, lit.BelowMin)):  # what pyiceberg makes of a number beyond a type's range
        return ("double", _float) if isinstance(literal.value, float) else ("long", _plain)
    raise InvalidArgumentError(f"filter: {type(literal).__name__} is not a literal that the engine knows")
