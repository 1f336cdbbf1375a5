"""Filters over a series: ``series_fir`` and ``series_iir``.

Before its first element, and behind its last, a series is taken to be zero. A missing element leaves every result that
depends on it missing.
"""

from duckdb_kql import ir

from emulators.kusto.extensions.registry import form, template
from emulators.kusto.extensions.sql import render

SUPPORTED: tuple[str, ...] = ("series_fir", "series_iir")

# The weighted window of each element, zeros on both sides making every window whole. (A slice of the captured list
# would copy the list for every element.)
_TERMS = "list_transform(_w.f, lambda _e, _k: _e * _w.z[_i + _w.o + len(_w.f) - _k])"
_WINDOWS = f"list_transform(range(1, len(_w.x) + 1), lambda _i: list_sum({_TERMS}))"
_SLOW_WINDOWS = f"""list_transform(range(1, len(_w.x) + 1), lambda _i: list_transform([{_TERMS}],
    lambda _s: CASE WHEN list_count(_s) = len(_s) THEN list_sum(_s) END)[1])"""
# y(i) = c y(i-1) + u(i) by doubling: after each pass an element holds twice as many terms.
_FIRST_ORDER = """list_reduce(list_transform(range(0, CAST(ceil(log2(len(_u.u) + 1)) AS BIGINT)),
    lambda _s: [CAST(1 << _s AS DOUBLE)]), lambda _y, _s: list_transform(_y, lambda _e, _i:
    CASE WHEN _i <= _s[1] THEN _e ELSE _e + pow(_u.c, _s[1]) * _y[_i - CAST(_s[1] AS BIGINT)] END), _u.u)"""
_ANY_ORDER = """list_reduce(list_transform(_u.u, lambda _e: [_e]), lambda _y, _e: list_append(_y,
    _e[1] - list_sum(list_transform(_u.r, lambda _c, _k: _c * coalesce(_y[len(_y) + 1 - _k],
    CASE WHEN len(_y) < _k THEN 0 END)))), CAST([] AS DOUBLE[]))"""
_MISSING = "len(list_filter({0}, lambda _e: _e IS NULL)) > 0"

macros: tuple[str, ...] = (
    f"""CREATE OR REPLACE MACRO kql_fir(numbers, weights, shift) AS list_transform(list_transform(
        [struct_pack(x := numbers, f := weights, o := shift)], lambda _p: struct_pack(x := _p.x, f := _p.f, o := _p.o,
            z := list_resize(CAST([] AS DOUBLE[]), len(_p.f) - 1, 0.0) || _p.x
                || list_resize(CAST([] AS DOUBLE[]), len(_p.f) - 1, 0.0))),
        lambda _w: CASE WHEN {_MISSING.format("_w.z")} THEN {_SLOW_WINDOWS} ELSE {_WINDOWS} END)[1]""",
    # Weights that are normalised have a sum of one; negative ones are normalised on demand only, and then to nothing.
    f"""CREATE OR REPLACE MACRO kql_series_fir(series, weights, normalize, center) AS list_transform(
        [struct_pack(x := kql_numbers(series), f := kql_numbers(weights), n := normalize, c := center)],
        lambda _a: CASE WHEN _a.x IS NULL OR coalesce(len(_a.f), 0) = 0 OR {_MISSING.format("_a.f")} THEN NULL
        WHEN _a.n AND list_min(_a.f) < 0 THEN NULL
        WHEN _a.c AND len(_a.f) % 2 = 0 THEN error('series_fir() with an even filter cannot be centered exactly')
        ELSE kql_series(kql_fir(_a.x, CASE WHEN coalesce(_a.n, list_min(_a.f) >= 0)
            THEN list_transform(_a.f, lambda _e: _e / list_sum(_a.f)) ELSE _a.f END,
            CASE WHEN _a.c THEN (len(_a.f) - 1) // 2 ELSE 0 END)) END)[1]""",
    f"""CREATE OR REPLACE MACRO kql_series_iir(series, numerators, denominators) AS list_transform(list_transform(
        [struct_pack(x := kql_numbers(series), b := kql_numbers(numerators), a := kql_numbers(denominators))],
        lambda _p: CASE WHEN _p.x IS NOT NULL AND len(_p.b) > 0 AND _p.a[1] <> 0
            AND NOT {_MISSING.format("_p.b || _p.a")} THEN struct_pack(a := _p.a,
            r := list_transform(_p.a[2:], lambda _e: _e / _p.a[1]), c := -_p.a[2] / _p.a[1],
            u := kql_fir(_p.x, list_transform(_p.b, lambda _e: _e / _p.a[1]), 0)) END),
        lambda _u: CASE WHEN _u IS NOT NULL THEN kql_series(CASE len(_u.a) WHEN 1 THEN _u.u WHEN 2 THEN {_FIRST_ORDER}
            ELSE {_ANY_ORDER} END) END)[1]""",
)


def install() -> None:
    """Teach the translator the functions of this module."""
    form("series_fir", (2, 3, 4), _fir)
    template("series_iir", "kql_series_iir({0}, {1}, {2})", 3)


def _fir(call: ir.FunctionCall) -> str:
    given = [render(arg) for arg in call.args]
    return f"kql_series_fir({', '.join([*given, *('NULL', 'FALSE')[len(given) - 2 :]])})"
