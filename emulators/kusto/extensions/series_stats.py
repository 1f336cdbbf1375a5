"""Statistics of a series: ``series_stats_dynamic``, and ``series_stats`` whose results are columns."""

from collections.abc import Callable

from duckdb_kql import ir

from emulators.kusto.extensions.registry import form
from emulators.kusto.extensions.series_outputs import Output, add_outputs
from emulators.kusto.extensions.sql import render

SUPPORTED: tuple[str, ...] = ("series_stats", "series_stats_dynamic")

_OUTPUTS: tuple[Output, ...] = (
    Output("min", "toreal"),
    Output("min_idx", "tolong"),
    Output("max", "toreal"),
    Output("max_idx", "tolong"),
    Output("avg", "toreal"),
    Output("stdev", "toreal"),
    Output("variance", "toreal"),
)
_NAMES = ("min", "min_idx", "max", "max_idx", "avg", "stdev", "variance", "sum", "len")
_NOTHING = ", ".join(f"'{name}', NULL" for name in _NAMES[:-1])
# A single number has no spread, as in Kusto's stdev() and variance().
_FILLED = """'min', list_min(_x.f), 'min_idx', list_position(_x.x, list_min(_x.f)) - 1,
    'max', list_max(_x.f), 'max_idx', list_position(_x.x, list_max(_x.f)) - 1, 'avg', list_avg(_x.f),
    'stdev', coalesce(list_stddev_samp(_x.f), 0.0), 'variance', coalesce(list_var_samp(_x.f), 0.0),
    'sum', list_sum(_x.f)"""

macros: tuple[str, ...] = (
    f"""CREATE OR REPLACE MACRO kql_series_stats(series, ignored) AS list_transform(list_transform(
        [struct_pack(x := kql_numbers(series), g := ignored)], lambda _n: struct_pack(x := _n.x, g := _n.g,
        f := list_filter(_n.x, lambda _e: isfinite(_e)))), lambda _x: CASE WHEN _x.x IS NULL THEN NULL
        WHEN len(_x.f) = 0 OR (NOT _x.g AND len(_x.f) < len(_x.x)) THEN json_object({_NOTHING}, 'len', len(_x.x))
        ELSE json_object({_FILLED}, 'len', len(_x.x)) END)[1]""",
)


def install() -> None:
    """Teach the translator the functions of this module."""
    form("series_stats_dynamic", (1, 2), _with_flag("kql_series_stats"))
    add_outputs("series_stats", "series_stats_dynamic", _OUTPUTS, (1, 2))


def _with_flag(macro: str) -> Callable[[ir.FunctionCall], str]:
    def write(call: ir.FunctionCall) -> str:
        series, *flag = (render(arg) for arg in call.args)
        return f"{macro}({series}, {flag[0] if flag else 'FALSE'})"

    return write
