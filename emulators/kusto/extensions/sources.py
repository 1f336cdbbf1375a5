"""Rendering of ``range`` and ``union``, whose column types depend on their operands.

The column of ``range`` has the type of its bounds; the values are the start plus whole multiples of the step. ``union``
rejects columns with the same name and different types, which SQL would silently convert.
"""

from collections.abc import Sequence
from typing import Any

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import replace, writer
from emulators.kusto.extensions.sql import quote_name, render
from emulators.kusto.extensions.type_guards import render_error

SUPPORTED: tuple[str, ...] = ("range (long, real, datetime, timespan)",)


MAX_ROWS = 100_000_000
_REALS = ("DOUBLE", "FLOAT")


def _install_range() -> None:
    """Make the translator library render the operator ``range`` by the types of its bounds."""
    replace(translate, "render_range", lambda _: _render_range)


def _render_range(source: ir.RangeSource) -> str:
    bounds = (source.start, source.stop, source.step)
    kinds = [_infer_bound_type(each) for each in bounds]
    values, distance = _render_values(kinds)
    too_many = render_error(
        "EMB0001", f"a range of more than {MAX_ROWS} rows is not supported by the embedded query engine"
    )
    zero_step = render_error("EMB0001", "a range with a step of 0 is not supported by the embedded query engine")
    listed = (
        f"CASE WHEN epoch_us(_c) = 0 THEN {zero_step} "
        if "timespan" in kinds
        else f"CASE WHEN _c = 0 THEN {zero_step} "
    )
    listed += f"WHEN {distance} > {MAX_ROWS} THEN {too_many} ELSE {values} END"
    named = ", ".join(
        f"{_render_bound(each, kinds)} AS {name}" for each, name in zip(bounds, ("_a", "_b", "_c"), strict=True)
    )
    return f"SELECT UNNEST({listed}) AS {translate.quote_ident(source.name)} FROM (SELECT {named})"  # noqa: S608


def _infer_bound_type(expr: ir.Expr) -> str | None:
    if writer.is_datetime_expr(expr):
        return "datetime"
    if writer.is_timespan_expr(expr):
        return "timespan"
    return "real" if writer.is_real_expr(expr) else infer_type(expr)


def _render_bound(expr: ir.Expr, kinds: list[str | None]) -> str:
    sql = render(expr)
    if "real" in kinds:
        return f"CAST({sql} AS DOUBLE)"
    if {"datetime", "timespan"} & set(kinds):
        return sql
    untyped = render_error(
        "EMB0001",
        "a range with bounds of unknown type over reals is not supported by the embedded query engine "
        "(write toreal(...))",
    )
    return (
        f"(SELECT CASE WHEN typeof(v) IN {_REALS} THEN {untyped} ELSE CAST(v AS BIGINT) END FROM (SELECT {sql} AS v))"  # noqa: S608
    )


def _render_values(kinds: list[str | None]) -> tuple[str, str]:
    """Return SQL of the values of ``range`` and of their approximate number, which is compared with ``MAX_ROWS``."""
    start, stop, step = kinds
    if "real" in (start, stop):
        count = "CAST(floor((_b - _a) / _c + 1e-9) AS BIGINT)"
        steps = f"list_transform(generate_series(0, {count}), lambda _i: _a + _i * _c)"
        return f"list_filter({steps}, lambda _v: CASE WHEN _c > 0 THEN _v <= _b ELSE _v >= _b END)", "(_b - _a) / _c"
    if step == "real":
        raise unsupported_error("range of whole numbers with a real step", "write the bounds as reals")
    distance = "(epoch_us(_b) - epoch_us(_a)) / epoch_us(_c)"
    if "datetime" in (start, stop):
        return "generate_series(_a, _b, _c)", distance
    if "timespan" in kinds:
        micros = "generate_series(epoch_us(_a), epoch_us(_b), epoch_us(_c))"
        return f"list_transform({micros}, lambda _i: to_microseconds(_i))", distance
    return "generate_series(_a, _b, _c)", "(CAST(_b AS DOUBLE) - _a) / _c"


def _install_union() -> None:
    """Make ``union`` reject common columns whose types differ between its inputs."""
    replace(translate, "render_union", lambda _: _render_union)


def _render_union(
    op: ir.Union,
    prev: str,
    left_cols: list[str],
    query: ir.Query,
    tables: Any,
    leading: bool,  # noqa: FBT001  the library's interface
) -> str:
    names = frozenset(name for name, _ in query.lets)
    qualify = writer.union_qualifies(query, op, leading)
    arms = [
        (sql, label, left_cols) for sql, label in writer.left_arms(op, prev, query, tables, leading, names, qualify)
    ]
    for index, branch in enumerate(schema.surviving_branches(op, tables), start=1):
        cols = schema.output_columns(branch, tables)
        arms += [(sql, label, cols) for sql, label in writer.branch_arms(branch, index, tables, names, qualify)]
    wildcard = any(isinstance(each, ir.WildcardTableRef) for each in _find_sources(op, query, leading=leading))
    shared = [] if wildcard else _find_common_columns([cols for _, _, cols in arms])
    body = "\nUNION ALL BY NAME ".join(_render_input(op, arm, shared) for arm in arms)
    columns = ", ".join(map(translate.quote_ident, schema.union_output_columns(op, left_cols, tables)))
    tests = [f"{quote_name(_to_type_name(name))} <> typeof({quote_name(name)})" for name in shared]
    where = f" WHERE CASE WHEN {' OR '.join(tests)} THEN {_TYPES_DIFFER} ELSE true END" if tests else ""
    return f"SELECT {columns} FROM ({body}){where}"  # noqa: S608  quoted names


_TYPES_DIFFER = render_error(
    "EMB0001",
    "'union' of columns of one name and different types is not supported by the embedded query engine (rename one)",
)


def _find_sources(op: ir.Union, query: ir.Query, *, leading: bool) -> list[ir.Source]:
    return [*([query.source] if leading else []), *(branch.source for branch in op.branches if not branch.operators)]


def _find_common_columns(inputs: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns that several inputs of ``union`` have in common and whose types may differ."""
    seen: set[str] = set()
    again: set[str] = set()
    for cols in inputs:
        again |= seen & set(cols)
        seen |= set(cols)
    return sorted(name for name in again if infer_type(ir.ColumnRef(name)) is None)


def _render_input(op: ir.Union, arm: tuple[str, str, Sequence[str]], shared: Sequence[str]) -> str:
    sql, label, cols = arm
    parts = [f"{translate.quote_string(label)} AS {quote_name(op.with_source)}"] if op.with_source else []
    types = [f"typeof({quote_name(name)}) AS {quote_name(_to_type_name(name))}" for name in shared if name in cols]
    return f"SELECT {', '.join([*parts, '*', *types])} FROM ({sql})"  # noqa: S608  quoted names


def _to_type_name(name: str) -> str:
    return f"\N{SYMBOL FOR NULL}{name}"


macros: tuple[str, ...] = ()


def install() -> None:
    """Add the rendering of ``range`` and ``union`` to the translator library."""
    _install_range()
    _install_union()
