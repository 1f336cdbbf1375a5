"""KQL functions that fit models to series: two lines, polynomials and the Fourier transform."""

from duckdb_kql import ir

from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.series_calls import Argument, SeriesCall, add_series_multi_result
from emulators.kusto.series_functions import SeriesFunction

_MODULE = "emulators.kusto.series"
_SIDE = ("rsquare", "slope", "interception", "variance", "rvariance")
_TWO_LINES = SeriesFunction(
    "series_fit_2lines",
    ("DOUBLE[]",),
    {
        "rsquare": "real",
        "split_idx": "long",
        "variance": "real",
        "rvariance": "real",
        "line_fit": "series",
        **{f"{side}_{name}": "real" for side in ("right", "left") for name in _SIDE},
    },
    f"{_MODULE}.regression:fit_two_lines",
)
_POLYNOMIAL = SeriesFunction(
    "series_fit_poly",
    ("DOUBLE[]", "DOUBLE[]", "BIGINT"),
    {"rsquare": "real", "coefficients": "series", "variance": "real", "rvariance": "real", "poly_fit": "series"},
    f"{_MODULE}.regression:fit_polynomial",
)
_PARTS = {"real": "series", "imag": "series"}
_FFT = SeriesFunction("series_fft", ("DOUBLE[]", "DOUBLE[]"), _PARTS, f"{_MODULE}.fourier:compute_transform")
_IFFT = SeriesFunction("series_ifft", ("DOUBLE[]", "DOUBLE[]"), _PARTS, f"{_MODULE}.fourier:transform_back")

series_functions: tuple[SeriesFunction, ...] = (_TWO_LINES, _POLYNOMIAL, _FFT, _IFFT)
"""Functions in Python that the KQL functions of this module call."""

_TWO_LINES_CALL = SeriesCall("series_fit_2lines", (Argument("series"),), 1, _TWO_LINES)
_POLYNOMIAL_CALL = SeriesCall(
    "series_fit_poly",
    (Argument("y_series"), Argument("x_series"), Argument("degree", "int")),
    1,
    _POLYNOMIAL,
)


def _render_two_lines_bag(node: ir.FunctionCall) -> str:
    """Return SQL for all outputs of ``series_fit_2lines()`` as one JSON object, with an object for each side."""
    sides = ", ".join(
        f"'{side}', json_object(" + ", ".join(f"'{name}', _f.{side}_{name}" for name in _SIDE) + ")"
        for side in ("right", "left")
    )
    whole = ", ".join(f"'{name}', _f.{name}" for name in ("rsquare", "split_idx", "variance", "rvariance"))
    return (
        f"list_transform([{_TWO_LINES_CALL.render(node.args)}], lambda _f: CASE WHEN _f IS NOT NULL THEN "
        f"json_object({whole}, 'line_fit', kql_series(_f.line_fit), {sides}) END)[1]"
    )


SUPPORTED: tuple[str, ...] = (
    "series_fit_2lines",
    "series_fit_2lines_dynamic",
    "series_fit_poly",
    "series_fft",
    "series_ifft",
)

macros: tuple[str, ...] = ()


def install() -> None:
    """Add fits with two lines and polynomials and the Fourier transform to the KQL translator library."""
    add_series_multi_result(_TWO_LINES_CALL)
    add_series_multi_result(_POLYNOMIAL_CALL)
    for function in (_FFT, _IFFT):
        parts = (Argument("x_real"), Argument("x_imaginary"))
        add_series_multi_result(SeriesCall(function.name, parts, 1, function))
    add_custom_function("series_fit_2lines_dynamic", (1,), _render_two_lines_bag)
