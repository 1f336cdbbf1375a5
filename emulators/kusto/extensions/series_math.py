"""Series element by element: arithmetic, comparison, and functions of one series.

"Any non-numeric element or non-existing element (arrays of different sizes) yields a null element value", as the Data
Explorer documentation says of each of these functions.
"""

from collections.abc import Mapping

from emulators.kusto.extensions.registry import template

_ARITHMETIC: Mapping[str, str] = {"series_add": "+", "series_subtract": "-", "series_multiply": "*"}
_COMPARISONS: Mapping[str, str] = {
    "series_equals": "=",
    "series_not_equals": "<>",
    "series_greater": ">",
    "series_greater_equals": ">=",
    "series_less": "<",
    "series_less_equals": "<=",
}
_UNARY: Mapping[str, str] = {
    "series_exp": "exp(_e)",
    "series_log": "ln(_e)",
    "series_sin": "sin(_e)",
    "series_cos": "cos(_e)",
    "series_tan": "tan(_e)",
    "series_asin": "asin(_e)",
    "series_acos": "acos(_e)",
    "series_atan": "atan(_e)",
    "series_ceiling": "ceil(_e)",
    "series_floor": "floor(_e)",
}
_KIND_KEEPING: Mapping[str, str] = {"series_abs": "abs(_e)", "series_sign": "CAST(sign(_e) AS DOUBLE)"}
_EXACT = "9007199254740992"
"""Reals hold every integer below this one, 2 to the power of 53; from there on an answer would be rounded."""

SUPPORTED: tuple[str, ...] = (
    *_ARITHMETIC,
    "series_divide",
    "series_pow",
    *_COMPARISONS,
    *_UNARY,
    *_KIND_KEEPING,
    "series_sum",
    "series_product",
    "series_dot_product",
    "series_magnitude",
    "series_cosine_similarity",
    "series_pearson_correlation",
)


def _pairwise(expression: str) -> str:
    """Return SQL of a list: an expression of ``_e[1]`` and ``_e[2]`` for each position of the longer operand."""
    return f"list_transform(list_zip(_p.a, _p.b), lambda _e: {expression})"


def _pair_macro(name: str, result: str) -> str:
    return f"""CREATE OR REPLACE MACRO {name}(one, other) AS list_transform([kql_operands(one, other)],
        lambda _p: CASE WHEN _p.a IS NULL OR _p.b IS NULL THEN NULL ELSE {result} END)[1]"""


def _arithmetic_macro(name: str, operator: str) -> str:
    extremes = ", ".join(f"list_max({part}), -list_min({part})" for part in ("_r.a", "_r.b", "_r.n"))
    return _pair_macro(
        f"kql_{name}",
        f"""list_transform([struct_pack(n := {_pairwise(f"_e[1] {operator} _e[2]")}, a := _p.a, b := _p.b, w := _p.w)],
        lambda _r: CASE WHEN NOT _r.w THEN kql_series(_r.n) WHEN greatest({extremes}) >= {_EXACT}
        THEN error('{name}() of integers beyond 2^53 is not supported') ELSE to_json(CAST(_r.n AS BIGINT[])) END)[1]""",
    )


def _unary_macro(name: str, element: str) -> str:
    return f"""CREATE OR REPLACE MACRO kql_{name}(series) AS
        kql_series(list_transform(kql_numbers(series), lambda _e: {element}))"""


def _kind_keeping_macro(name: str, element: str) -> str:
    return f"""CREATE OR REPLACE MACRO kql_{name}(series) AS list_transform([TRY_CAST(series AS JSON)], lambda _s:
        kql_same_kind(list_transform(kql_numbers(_s), lambda _e: {element}), kql_whole(_s)))[1]"""


macros: tuple[str, ...] = (
    *(_arithmetic_macro(name, operator) for name, operator in _ARITHMETIC.items()),
    _pair_macro("kql_series_divide", f"kql_series({_pairwise('_e[1] / _e[2]')})"),
    _pair_macro("kql_series_pow", f"kql_series({_pairwise('pow(_e[1], _e[2])')})"),
    *(
        _pair_macro(f"kql_{name}", f"to_json({_pairwise(f'_e[1] {operator} _e[2]')})")
        for name, operator in _COMPARISONS.items()
    ),
    *(_unary_macro(name, element) for name, element in _UNARY.items()),
    *(_kind_keeping_macro(name, element) for name, element in _KIND_KEEPING.items()),
    _pair_macro("kql_series_dot_product", "list_sum(" + _pairwise("_e[1] * _e[2]") + ")"),
    """CREATE OR REPLACE MACRO kql_series_magnitude(series) AS
        sqrt(list_sum(list_transform(kql_numbers(series), lambda _e: _e * _e)))""",
    """CREATE OR REPLACE MACRO kql_series_cosine_similarity(one, other) AS list_transform(
        [struct_pack(one := TRY_CAST(one AS JSON), other := TRY_CAST(other AS JSON))],
        lambda _c: kql_series_dot_product(_c.one, _c.other)
        / (kql_series_magnitude(_c.one) * kql_series_magnitude(_c.other)))[1]""",
    # Pairs without a null: the correlation of any other series is null.
    """CREATE OR REPLACE MACRO kql_series_pearson_correlation(one, other) AS list_transform([kql_operands(one, other)],
        lambda _p: CASE WHEN len(_p.a) = len(_p.b) AND len(_p.a) > 0
        AND len(list_filter(_p.a, lambda _e: _e IS NULL)) + len(list_filter(_p.b, lambda _e: _e IS NULL)) = 0
        THEN list_transform([struct_pack(a := _p.a, b := _p.b, m := list_avg(_p.a), n := list_avg(_p.b))],
            lambda _c: list_sum(list_transform(_c.a, lambda _e, _i: (_e - _c.m) * (_c.b[_i] - _c.n)))
                / sqrt(list_sum(list_transform(_c.a, lambda _e: pow(_e - _c.m, 2)))
                * list_sum(list_transform(_c.b, lambda _e: pow(_e - _c.n, 2)))))[1] END)[1]""",
)


def install() -> None:
    """Teach the translator the functions of this module."""
    pairs = (*_ARITHMETIC, *_COMPARISONS, "series_divide", "series_pow", "series_dot_product")
    for name in (*pairs, "series_cosine_similarity", "series_pearson_correlation"):
        template(name, f"kql_{name}({{0}}, {{1}})", 2)
    for name in (*_UNARY, *_KIND_KEEPING, "series_magnitude"):
        template(name, f"kql_{name}({{0}})", 1)
    template("series_sum", "list_sum(kql_numbers({0}))", 1)
    template("series_product", "list_product(kql_numbers({0}))", 1)
