"""KQL functions of statistics: the error function and Welch's test."""

from emulators.kusto.extensions.series_calls import Argument, SeriesCall, add_series_scalar
from emulators.kusto.series_functions import SeriesFunction

_MODULE = "emulators.kusto.series.significance"
_VALUE = {"value": "real"}
_ERF = SeriesFunction("erf", ("DOUBLE",), _VALUE, f"{_MODULE}:compute_erf")
_ERFC = SeriesFunction("erfc", ("DOUBLE",), _VALUE, f"{_MODULE}:compute_erfc")
_WELCH = SeriesFunction("welch_test", ("DOUBLE",) * 6, _VALUE, f"{_MODULE}:compute_welch_test")
_WELCH_ARGUMENTS = ("mean1", "variance1", "count1", "mean2", "variance2", "count2")

series_functions: tuple[SeriesFunction, ...] = (_ERF, _ERFC, _WELCH)
"""Functions in Python that the KQL functions of this module call."""

SUPPORTED: tuple[str, ...] = ("erf", "erfc", "welch_test")

macros: tuple[str, ...] = ()


def install() -> None:
    """Add the error function and Welch's test to the KQL translator library."""
    for function in (_ERF, _ERFC):
        add_series_scalar(SeriesCall(function.name, (Argument("x", "real"),), 1, function), "value")
    arguments = tuple(Argument(name, "real") for name in _WELCH_ARGUMENTS)
    add_series_scalar(SeriesCall("welch_test", arguments, len(arguments), _WELCH), "value")
