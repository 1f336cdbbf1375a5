"""``range``: a column of numbers, instants or timespans, of the type that its bounds have.

The values are the start and the start plus whole multiples of the step, as far as the stop, as documented.
"""

from duckdb_kql import ir, translate

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.known_types import kind_of
from emulators.kusto.extensions.library import replace, writer
from emulators.kusto.extensions.raising import raising
from emulators.kusto.extensions.sql import render

MOST_ROWS = 100_000_000
_REALS = ("DOUBLE", "FLOAT")

SUPPORTED: tuple[str, ...] = ("range (long, real, datetime, timespan)",)
macros: tuple[str, ...] = ()


def install() -> None:
    """Write the source so."""
    replace(translate, "render_range", lambda _: _range)


def _range(source: ir.RangeSource) -> str:
    bounds = (source.start, source.stop, source.step)
    kinds = [_kind(each) for each in bounds]
    values, distance = _values(kinds)
    too_many = raising(
        "EMB0001", f"a range of more than {MOST_ROWS} rows is not supported by the embedded query engine"
    )
    standing = raising("EMB0001", "a range with a step of 0 is not supported by the embedded query engine")
    listed = (
        f"CASE WHEN epoch_us(_c) = 0 THEN {standing} " if "timespan" in kinds else f"CASE WHEN _c = 0 THEN {standing} "
    )
    listed += f"WHEN {distance} > {MOST_ROWS} THEN {too_many} ELSE {values} END"
    named = ", ".join(f"{_bound(each, kinds)} AS {name}" for each, name in zip(bounds, ("_a", "_b", "_c"), strict=True))
    return f"SELECT UNNEST({listed}) AS {translate.quote_ident(source.name)} FROM (SELECT {named})"  # noqa: S608


def _kind(expr: ir.Expr) -> str | None:
    if writer.is_datetime_expr(expr):
        return "datetime"
    if writer.is_timespan_expr(expr):
        return "timespan"
    return "real" if writer.is_real_expr(expr) else kind_of(expr)


def _bound(expr: ir.Expr, kinds: list[str | None]) -> str:
    sql = render(expr)
    if "real" in kinds:
        return f"CAST({sql} AS DOUBLE)"
    if {"datetime", "timespan"} & set(kinds):
        return sql
    untyped = raising(
        "EMB0001",
        "a range over reals of a type that shows late is not supported by the embedded query engine "
        "(write toreal(...))",
    )
    return (
        f"(SELECT CASE WHEN typeof(v) IN {_REALS} THEN {untyped} ELSE CAST(v AS BIGINT) END FROM (SELECT {sql} AS v))"  # noqa: S608
    )


def _values(kinds: list[str | None]) -> tuple[str, str]:
    """Return the list of the values, and about how many there are."""
    start, stop, step = kinds
    if "real" in (start, stop):
        count = "CAST(floor((_b - _a) / _c + 1e-9) AS BIGINT)"
        steps = f"list_transform(generate_series(0, {count}), lambda _i: _a + _i * _c)"
        return f"list_filter({steps}, lambda _v: CASE WHEN _c > 0 THEN _v <= _b ELSE _v >= _b END)", "(_b - _a) / _c"
    if step == "real":
        raise unsupported("range of whole numbers with a step that is none", "write the bounds as reals")
    distance = "(epoch_us(_b) - epoch_us(_a)) / epoch_us(_c)"
    if "datetime" in (start, stop):
        return "generate_series(_a, _b, _c)", distance
    if "timespan" in kinds:
        micros = "generate_series(epoch_us(_a), epoch_us(_b), epoch_us(_c))"
        return f"list_transform({micros}, lambda _i: to_microseconds(_i))", distance
    return "generate_series(_a, _b, _c)", "(CAST(_b AS DOUBLE) - _a) / _c"
