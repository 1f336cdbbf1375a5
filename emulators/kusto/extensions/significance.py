"""KQL functions of statistics: the error function, Welch's test and the beta distribution."""

from emulators.kusto.extensions.series_calls import Argument, SeriesCall, add_series_scalar
from emulators.kusto.series_functions import SeriesFunction

_MODULE = "emulators.kusto.series.significance"
_BETA_MODULE = "emulators.kusto.series.beta_distribution"
_VALUE = {"value": "real"}
_ERF = SeriesFunction("erf", ("DOUBLE",), _VALUE, f"{_MODULE}:compute_erf")
_ERFC = SeriesFunction("erfc", ("DOUBLE",), _VALUE, f"{_MODULE}:compute_erfc")
_WELCH = SeriesFunction("welch_test", ("DOUBLE",) * 6, _VALUE, f"{_MODULE}:compute_welch_test")
_WELCH_ARGUMENTS = ("mean1", "variance1", "count1", "mean2", "variance2", "count2")

_BETAS: tuple[tuple[SeriesFunction, str], ...] = tuple(
    (SeriesFunction(name, ("DOUBLE",) * 3, _VALUE, f"{_BETA_MODULE}:compute_{name}"), first)
    for name, first in (("beta_cdf", "x"), ("beta_inv", "probability"), ("beta_pdf", "x"))
)

series_functions: tuple[SeriesFunction, ...] = (_ERF, _ERFC, _WELCH, *(function for function, _ in _BETAS))
"""Functions in Python that the KQL functions of this module call."""

SUPPORTED: tuple[str, ...] = ("beta_cdf", "beta_inv", "beta_pdf", "erf", "erfc", "welch_test")

macros: tuple[str, ...] = ()


def install() -> None:
    """Add the error function, Welch's test and the beta distribution to the KQL translator library."""
    for function in (_ERF, _ERFC):
        add_series_scalar(SeriesCall(function.name, (Argument("x", "real"),), 1, function), "value")
    arguments = tuple(Argument(name, "real") for name in _WELCH_ARGUMENTS)
    add_series_scalar(SeriesCall("welch_test", arguments, len(arguments), _WELCH), "value")
    for beta, first in _BETAS:
        named = tuple(Argument(name, "real") for name in (first, "alpha", "beta"))
        add_series_scalar(SeriesCall(beta.name, named, len(named), beta), "value")
