"""Linear regression over a series: ``series_fit_line`` and ``series_fit_line_dynamic``.

The line is that of least squares over the positions 0, 1, 2 ... of the elements; variances are those of a sample.
A series with a missing or a non-finite element, or of fewer than two elements, has no line.
"""

from emulators.kusto.extensions.registry import template
from emulators.kusto.extensions.series_outputs import Output, add_outputs

SUPPORTED: tuple[str, ...] = ("series_fit_line", "series_fit_line_dynamic")

_NAMES = ("rsquare", "slope", "variance", "rvariance", "interception")
_OUTPUTS = (*(Output(name, "toreal") for name in _NAMES), Output("line_fit"))

macros: tuple[str, ...] = (
    # The numbers of the line through a list without nulls: a struct, or null.
    """CREATE OR REPLACE MACRO kql_line(numbers) AS list_transform(list_transform(list_transform(
        [numbers], lambda _y: struct_pack(y := _y, n := len(_y), v := list_avg(_y), x := (len(_y) - 1) / 2.0)),
        lambda _m: struct_pack(m := _m, b := list_sum(list_transform(_m.y, lambda _e, _i:
            (_i - 1 - _m.x) * (_e - _m.v))) / (_m.n * (_m.n * _m.n - 1) / 12.0))),
        lambda _l: CASE WHEN _l.m.n > 1
            THEN struct_pack(slope := _l.b, interception := _l.m.v - _l.b * _l.m.x) END)[1]""",
    """CREATE OR REPLACE MACRO kql_series_fit_line(series) AS list_transform(list_transform(list_transform(
        [kql_numbers(series)], lambda _y: struct_pack(y := _y, l :=
            CASE WHEN len(list_filter(_y, lambda _e: isfinite(_e))) = len(_y) THEN kql_line(_y) END)),
        lambda _p: struct_pack(y := _p.y, l := _p.l,
            f := list_transform(_p.y, lambda _e, _i: _p.l.interception + _p.l.slope * (_i - 1)))),
        lambda _q: CASE WHEN _q.y IS NULL THEN NULL WHEN _q.l IS NULL THEN json_object('rsquare', NULL, 'slope', NULL,
            'variance', NULL, 'rvariance', NULL, 'interception', NULL, 'line_fit', NULL)
        ELSE list_transform([struct_pack(v := list_var_samp(_q.y), r := list_sum(list_transform(_q.y,
            lambda _e, _i: pow(_e - _q.f[_i], 2))) / (len(_q.y) - 1))], lambda _v: json_object(
            'rsquare', CASE WHEN _v.v > 0 THEN 1 - _v.r / _v.v END, 'slope', _q.l.slope, 'variance', _v.v,
            'rvariance', _v.r, 'interception', _q.l.interception, 'line_fit', kql_series(_q.f)))[1] END)[1]""",
)


def install() -> None:
    """Teach the translator the functions of this module."""
    template("series_fit_line_dynamic", "kql_series_fit_line({0})", 1)
    add_outputs("series_fit_line", "series_fit_line_dynamic", _OUTPUTS, (1,))
