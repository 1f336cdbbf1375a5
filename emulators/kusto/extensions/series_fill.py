"""Filling gaps: ``series_fill_linear``, ``series_fill_const``, ``series_fill_forward`` and ``series_fill_backward``.

Elements keep their original type, so these work on JSON values; between the known values there are runs, and the result
is put together from runs, which takes time in proportion to the length of the series.
"""

from duckdb_kql import ir

from emulators.kusto.extensions.registry import form
from emulators.kusto.extensions.sql import render

SUPPORTED: tuple[str, ...] = (
    "series_fill_linear",
    "series_fill_const",
    "series_fill_forward",
    "series_fill_backward",
)

_KNOWN = "list_filter(range(1, len(_g.x) + 1), lambda _i: NOT _g.m[_i])"
_RUNS = "flatten(list_transform(range(1, len(_f.k) + 1), lambda _r: {run}))"
_ELEMENTS = "CAST(CASE WHEN json_type(_s.j) = 'ARRAY' THEN _s.j END AS JSON[])"


def _filling(name: str, parameters: str, bound: str, filled: str) -> str:
    """Return a macro whose body sees the elements ``x``, their numbers ``v``, which are missing ``m``, and known ``k``.

    An element is missing when it equals the placeholder; a placeholder that is null means the nulls.
    """
    return f"""CREATE OR REPLACE MACRO kql_{name}(series, missing{parameters}) AS list_transform(list_transform(
        list_transform([struct_pack(j := TRY_CAST(series AS JSON), p := kql_number(missing){bound})],
        lambda _s: struct_pack(x := {_ELEMENTS}, v := kql_numbers(_s.j), w := kql_whole(_s.j), s := _s)),
        lambda _n: struct_pack(x := _n.x, v := _n.v, w := _n.w, s := _n.s, m := list_transform(_n.v, lambda _v:
            CASE WHEN _n.s.p IS NULL THEN _v IS NULL ELSE _v IS NOT DISTINCT FROM _n.s.p END))),
        lambda _g: list_transform([struct_pack(x := _g.x, v := _g.v, w := _g.w, s := _g.s, m := _g.m, k := {_KNOWN})],
            lambda _f: CASE WHEN _f.x IS NOT NULL THEN {filled} END)[1])[1]"""


_FORWARD = f"""CASE WHEN len(_f.k) = 0 THEN to_json(_f.x) ELSE to_json(_f.x[1:_f.k[1] - 1] || {
    _RUNS.format(
        run='''list_resize(CAST([] AS JSON[]),
        CASE WHEN _r = len(_f.k) THEN len(_f.x) + 1 ELSE _f.k[_r + 1] END - _f.k[_r], _f.x[_f.k[_r]])'''
    )
}) END"""
_BACKWARD = f"""CASE WHEN len(_f.k) = 0 THEN to_json(_f.x) ELSE to_json({
    _RUNS.format(
        run='''list_resize(CAST([] AS JSON[]),
        _f.k[_r] - CASE WHEN _r = 1 THEN 0 ELSE _f.k[_r - 1] END, _f.x[_f.k[_r]])'''
    )
} || _f.x[_f.k[len(_f.k)] + 1:]) END"""
_CONST = "to_json(list_transform(_f.x, lambda _e, _i: CASE WHEN _f.m[_i] THEN _f.s.c ELSE _e END))"
# Between two known values; a series of integers gets integers, cut towards zero.
_LINE = """list_transform(range(0, _f.k[_r + 1] - _f.k[_r]), lambda _d: list_transform([_f.v[_f.k[_r]]
    + _d * (_f.v[_f.k[_r + 1]] - _f.v[_f.k[_r]]) / (_f.k[_r + 1] - _f.k[_r])],
    lambda _y: CASE WHEN _f.w THEN trunc(_y) ELSE _y END)[1])"""
_BETWEEN = _RUNS.replace("len(_f.k) + 1", "len(_f.k)").format(run=_LINE)
_LINEAR = f"""CASE WHEN len(_f.k) = 0 THEN CASE WHEN _f.s.c IS NULL THEN _f.s.j
        ELSE to_json(list_transform(_f.x, lambda _e: _f.s.c)) END
    ELSE kql_same_kind(
        CASE WHEN _f.s.e THEN list_resize(CAST([] AS DOUBLE[]), _f.k[1] - 1, _f.v[_f.k[1]]) ELSE _f.v[1:_f.k[1] - 1] END
        || {_BETWEEN} || [_f.v[_f.k[len(_f.k)]]]
        || CASE WHEN _f.s.e THEN list_resize(CAST([] AS DOUBLE[]), len(_f.x) - _f.k[len(_f.k)], _f.v[_f.k[len(_f.k)]])
            ELSE _f.v[_f.k[len(_f.k)] + 1:] END, _f.w) END"""

macros: tuple[str, ...] = (
    _filling("series_fill_forward", "", "", _FORWARD),
    _filling("series_fill_backward", "", "", _BACKWARD),
    _filling("series_fill_const", ", constant", ", c := TRY_CAST(constant AS JSON)", _CONST),
    _filling(
        "series_fill_linear",
        ", edges, constant",
        ", e := edges, c := TRY_CAST(constant AS JSON)",
        _LINEAR,
    ),
)


def install() -> None:
    """Teach the translator the functions of this module."""
    form("series_fill_forward", (1, 2), lambda call: _call(call, "NULL"))
    form("series_fill_backward", (1, 2), lambda call: _call(call, "NULL"))
    form("series_fill_linear", (1, 2, 3, 4), lambda call: _call(call, "NULL", "TRUE", "CAST(0 AS DOUBLE)"))
    form("series_fill_const", (2, 3), _const)


def _call(call: ir.FunctionCall, *defaults: str) -> str:
    """Return the macro's call, with defaults for the arguments that are not there."""
    given = [render(arg) for arg in call.args]
    return f"kql_{call.name.lower()}({', '.join([*given, *defaults[len(given) - 1 :]])})"


def _const(call: ir.FunctionCall) -> str:
    series, constant, *missing = (render(arg) for arg in call.args)
    return f"kql_series_fill_const({series}, {missing[0] if missing else 'NULL'}, {constant})"
