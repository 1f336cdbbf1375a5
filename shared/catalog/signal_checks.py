"""Rules for the signals (typed payload fields) of a connection."""

from collections.abc import Iterator, Sequence

from shared.catalog.problems import Path
from shared.catalog.signal_models import NUMERIC, SignalDefinition


def check_signals(at: Path, signals: Sequence[SignalDefinition]) -> Iterator[tuple[Path, str]]:
    """Yield the violations of rules between the signals (typed payload fields) of a connection.

    Args:
        at: path of the list of signals in the workspace document.
        signals: signals whose single fields are valid.
    """
    names: set[str] = set()
    pointers: set[str] = set()
    for index, signal in enumerate(signals):
        place = (*at, index)
        if signal.name in names:
            yield (*place, "name"), "is already the name of another signal of this connection"
        if signal.pointer in pointers:
            yield (*place, "pointer"), "is already the pointer of another signal of this connection"
        names.add(signal.name)
        pointers.add(signal.pointer)
        yield from (((*place, field), rule) for field, rule in _check_signal_limits(signal))


def _check_signal_limits(signal: SignalDefinition) -> Iterator[tuple[str, str]]:
    if signal.type not in NUMERIC:
        limits = (("min", signal.min), ("max", signal.max))
        yield from ((field, "is allowed only with type real or long") for field, value in limits if value is not None)
    elif signal.min is not None and signal.max is not None and signal.min > signal.max:
        yield "min", "must not be above max"
