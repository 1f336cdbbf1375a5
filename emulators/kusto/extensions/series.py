"""Series: ``make-series`` and the functions over numeric arrays."""

from emulators.kusto.extensions import (
    make_series,
    series_decompose,
    series_fill,
    series_filter,
    series_fit,
    series_math,
    series_outputs,
    series_stats,
    series_values,
)

_PARTS = (
    series_values,
    series_math,
    series_fill,
    series_stats,
    series_fit,
    series_filter,
    series_decompose,
    make_series,
    series_outputs,
)

SUPPORTED: tuple[str, ...] = tuple(name for part in _PARTS for name in getattr(part, "SUPPORTED", ()))

macros: tuple[str, ...] = tuple(macro for part in _PARTS for macro in part.macros)


def install() -> None:
    """Teach the translator the operator and the functions."""
    for part in _PARTS:
        part.install()
