"""SQL of the query operator ``range``: the column has the type of its bounds.

The values are the start plus whole multiples of the step.
"""

from duckdb_kql import ir, translate

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.sql import render_expression
from emulators.kusto.extensions.type_guards import render_error

SUPPORTED: tuple[str, ...] = ("range (long, real, datetime, timespan)",)


MAX_ROWS = 100_000_000
_REALS = ("DOUBLE", "FLOAT")


def _install_range() -> None:
    """Make the translator library choose the SQL of ``range`` by the types of its bounds."""
    replace_attribute(translate, "render_range", lambda _: _render_range)


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
    sql = render_expression(expr)
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
    """Return SQL for the values of a ``range``, and SQL for the approximate number of values, to check the limit."""
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
        return "kql_timespan_range(_a, _b, _c)", distance
    return "generate_series(_a, _b, _c)", "(CAST(_b AS DOUBLE) - _a) / _c"


macros: tuple[str, ...] = (
    # The type of the bounds is known to DuckDB only, if a bound is the result of a function or of toscalar().
    """CREATE OR REPLACE MACRO kql_timespan_range(a TIMESTAMP, b TIMESTAMP, c INTERVAL) AS generate_series(a, b, c),
        (a INTERVAL, b INTERVAL, c INTERVAL) AS list_transform(generate_series(epoch_us(a), epoch_us(b), epoch_us(c)),
        lambda _i: to_microseconds(_i))""",
)


def install() -> None:
    """Replace the SQL of ``range`` in the translator library."""
    _install_range()
