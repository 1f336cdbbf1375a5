"""Comparisons of values whose types do not go together, which SQL converts in silence and Kusto refuses.

Which operand types an operator takes follows the operators' signatures in Kusto's published language definition: texts
and dynamics have no order, ``==`` takes no number beside a text, and two dynamics are not compared at all.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, translate

from emulators.kusto.errors import QueryError, semantic_error, unsupported
from emulators.kusto.extensions.known_types import kind_of
from emulators.kusto.extensions.library import replace
from emulators.kusto.extensions.raising import (
    DYNAMICS,
    TEXTS,
    both,
    either,
    guarded,
    is_number,
    is_of,
    raising,
)
from emulators.kusto.extensions.sql import render

macros: tuple[str, ...] = (
    # A dynamic beside a whole number: what is none inside is null; which way Kusto rounds a fraction is not documented.
    (
        "CREATE OR REPLACE MACRO kql_json_whole(j) AS CASE WHEN json_type(to_json(j)) = 'DOUBLE' AND "
        "TRY_CAST(to_json(j) AS DOUBLE) <> trunc(TRY_CAST(to_json(j) AS DOUBLE)) THEN "
        "{fraction} ELSE TRY_CAST(to_json(j) AS BIGINT) END"
    ).replace(
        "{fraction}",
        raising(
            "EMB0001",
            "comparing a fraction inside a dynamic with a whole number is not supported by the embedded query engine "
            "(convert it first: todouble(...) or tolong(...))",
        ),
    ),
    "CREATE OR REPLACE MACRO kql_json_real(j) AS TRY_CAST(to_json(j) AS DOUBLE)",
    (
        "CREATE OR REPLACE MACRO kql_is_number(t) AS t IN ('BIGINT', 'INTEGER', 'DOUBLE', 'HUGEINT', 'UBIGINT', "
        "'SMALLINT', 'FLOAT', 'TINYINT', 'UINTEGER') OR starts_with(t, 'DECIMAL')"
    ),
    (
        "CREATE OR REPLACE MACRO kql_joinable(l, r) AS l = r OR '\"NULL\"' IN (l, r) OR "
        "(kql_is_number(l) AND kql_is_number(r))"
    ),
)

_EQUALITIES = frozenset({"==", "!=", "<>"})
_ORDERS = frozenset({"<", "<=", ">", ">="})
_WHOLE = frozenset({"int", "long"})
_NUMBERS = frozenset({"int", "long", "real", "decimal"})
_UNORDERED = frozenset({"string", "dynamic", "guid"})


def install() -> None:
    """Guard the comparisons, and the keys of joins."""
    replace(translate, "render_expr", _comparing)
    replace(translate, "render_in_list", _listed)
    replace(translate, "render_between", _between)
    replace(translate, "render_key_equality", _keys)


def _comparing(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    def render_expr(node: ir.Expr) -> str:
        if not isinstance(node, ir.BinaryOp) or node.op not in _EQUALITIES | _ORDERS:
            return default(node)
        return _compared(default, node)

    return render_expr


def _compared(default: Callable[[ir.Expr], str], node: ir.BinaryOp) -> str:
    kinds = kind_of(node.left), kind_of(node.right)
    if None not in kinds:
        _check(node.op, str(kinds[0]), str(kinds[1]))
        return default(_with_numbers(node, kinds))
    sql = default(_with_numbers(node, kinds))
    for known, unknown in ((0, 1), (1, 0)):
        expr = (node.left, node.right)[unknown]
        if isinstance(expr, ir.ColumnRef):
            sql = _beside(default, node, sql, kinds[known], unknown)
            break
    return sql


def _check(operator: str, left: str, right: str) -> None:
    """Pass when the operator takes operands of these types.

    Raises:
        QueryError: it does not, or this engine does not know what it answers.
    """
    kinds = {left, right}
    if "null" in kinds:
        return
    if "string" in kinds and kinds & (_NUMBERS | {"bool"}):
        raise _incomparable(left, right)
    if operator in _EQUALITIES:
        return
    if kinds == {"string"} or ("dynamic" in kinds and not kinds & _NUMBERS and kinds != {"dynamic"}):
        raise semantic_error(
            f"The operator '{operator}' is not defined for the operand types {left} and {right}", inner="SEM0065"
        )
    if kinds == {"dynamic"}:
        raise unsupported(f"{operator} between two dynamic values", "convert them first, as in tolong(...)")


def _incomparable(left: str, right: str) -> QueryError:
    return semantic_error(
        f"Cannot compare values of types {left} and {right}. Try adding explicit casts", inner="SEM0064"
    )


def _with_numbers(node: ir.BinaryOp, kinds: tuple[str | None, str | None]) -> ir.BinaryOp:
    """Return the comparison with the number inside a dynamic that is known to be one."""
    left, right = kinds
    if left == "dynamic" and right in _NUMBERS:
        return dataclasses.replace(node, left=_number(node.left, right))
    if right == "dynamic" and left in _NUMBERS:
        return dataclasses.replace(node, right=_number(node.right, left))
    return node


def _number(expr: ir.Expr, beside: str | None) -> ir.Expr:
    return ir.RenderedAggregate(f"kql_json_{'whole' if beside in _WHOLE else 'real'}({render(expr)})")


def _beside(default: Callable[[ir.Expr], str], node: ir.BinaryOp, sql: str, known: str | None, unknown: int) -> str:
    """Return a comparison of a column of unknown type, guarded by that type."""
    sides = [node.left, node.right]
    column, other = sides[unknown], sides[1 - unknown]
    name = render(column)
    operator = node.op
    dynamic, text = is_of(name, DYNAMICS), is_of(name, TEXTS)
    if known in _NUMBERS:
        sides[unknown] = _number(column, known)
        converted = default(ir.BinaryOp(operator, sides[0], sides[1]))
        sql = f"CASE WHEN {dynamic} THEN {converted} ELSE {sql} END"
        return guarded(text, _types_differ("string", str(known)), sql)
    if known == "string":
        unordered = either(text, dynamic) if operator in _ORDERS else ""
        sql = guarded(unordered, _undefined(operator), sql)
        return guarded(either(is_number(name), is_of(name, ("BOOLEAN",))), _types_differ("string", "long"), sql)
    if known is None and isinstance(other, ir.ColumnRef):
        return _of_columns(operator, name, render(other), sql)
    if operator in _ORDERS and known != "null":
        sql = guarded(dynamic, _undefined(operator), sql)
    return sql


def _of_columns(operator: str, left: str, right: str, sql: str) -> str:
    dynamics = both(is_of(left, DYNAMICS), is_of(right, DYNAMICS))
    sql = guarded(dynamics, raising("SEM0001", "Cannot compare dynamic values without explicit cast"), sql)
    mixed = either(both(is_of(left, TEXTS), is_number(right)), both(is_number(left), is_of(right, TEXTS)))
    if operator in _ORDERS:
        texts = either(both(is_of(left, TEXTS), is_of(right, TEXTS)), is_of(left, DYNAMICS), is_of(right, DYNAMICS))
        sql = guarded(texts, _undefined(operator), sql)
    return guarded(mixed, _types_differ("string", "long"), sql)


def _types_differ(left: str, right: str) -> str:
    return raising("SEM0064", f"Cannot compare values of types {left} and {right}. Try adding explicit casts")


def _undefined(operator: str) -> str:
    return raising("SEM0065", f"The operator '{operator}' is not defined for operands of type string or dynamic")


def _listed(default: Callable[[ir.InList], str]) -> Callable[[ir.InList], str]:
    def render_in_list(node: ir.InList) -> str:
        sql = default(node)
        kinds = {kind_of(item) for item in node.items} - {None, "null", "dynamic"}
        value = kind_of(node.value)
        texts, numbers = "string" in kinds, bool(kinds & _NUMBERS)
        if value is not None:
            for kind in kinds:
                _check("==", value, str(kind))
        if value is not None or not isinstance(node.value, ir.ColumnRef) or not (texts or numbers):
            return sql
        name = render(node.value)
        test = is_number(name) if texts else is_of(name, TEXTS)
        return guarded(test, _types_differ("string", "long"), sql)

    return render_in_list


def _between(default: Callable[[ir.Between], str]) -> Callable[[ir.Between], str]:
    def render_between(node: ir.Between) -> str:
        sql = default(node)
        for operand in (node.value, node.low, node.high):
            kind = kind_of(operand)
            if kind in _UNORDERED:
                raise unsupported("between over a string or a dynamic value", "convert it first, as in todouble(...)")
            if kind is None and isinstance(operand, ir.ColumnRef):
                test = is_of(render(operand), (*TEXTS, *DYNAMICS))
                sql = guarded(test, _unconverted("between"), sql)
        return sql

    return render_between


def _unconverted(what: str) -> str:
    return raising(
        "EMB0001",
        f"'{what}' over a string or a dynamic value is not supported by the embedded query engine (convert it first)",
    )


def _keys(default: Callable[[Sequence[ir.JoinKey]], str]) -> Callable[[Sequence[ir.JoinKey]], str]:
    def render_key_equality(keys: Sequence[ir.JoinKey]) -> str:
        return " AND ".join([default(keys), *(_alike(key) for key in keys)])

    return render_key_equality


def _alike(key: Any) -> str:
    left, right = (kind_of(ir.ColumnRef(name)) for name in (key.left, key.right))
    if left is not None and left == right:
        return "true"
    sides = f"typeof(_l.{translate.quote_ident(key.left)}), typeof(_r.{translate.quote_ident(key.right)})"
    failure = raising("SEM0031", "join: the types of the attributes that are joined on do not match")
    return f"CASE WHEN kql_joinable({sides}) THEN true ELSE {failure} END"
