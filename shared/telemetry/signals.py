"""Comparison of payload values with the types that a connection declares for its signals (payload fields)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.catalog.signal_models import SignalDefinition, SignalType
from shared.telemetry.pointers import Pointer, compile_pointer, resolve_pointer
from shared.text_formats.long_integers import LongInteger
from shared.timestamps import parse_rfc3339

_MAX_LONG: Final = 2**63 - 1
_MIN_LONG: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class SignalCheck:
    """Type check for a signal, a typed field of the payload.

    Attributes:
        pointer: JSON Pointer to the value in the payload.
        has_type: function that returns whether a value other than null has the declared type.
    """

    pointer: Pointer
    has_type: Callable[[Any], bool]


def build_signal_checks(signals: Iterable[SignalDefinition]) -> tuple[SignalCheck, ...]:
    """Build a type check for each signal that a connection declares."""
    return tuple(SignalCheck(compile_pointer(signal.pointer), TYPE_CHECKS[signal.type]) for signal in signals)


def has_type_mismatch(checks: Sequence[SignalCheck], payload: Mapping[str, Any]) -> bool:
    """Return whether a value of a payload does not have its declared type; missing and null values are valid."""
    for check in checks:
        value = resolve_pointer(payload, check.pointer)
        if value is not None and not check.has_type(value):
            return True
    return False


def is_real(value: Any) -> bool:
    """Return whether a JSON value is valid for the signal type ``real``, which is any number except a boolean."""
    return isinstance(value, int | float | LongInteger) and not isinstance(value, bool)


def is_long(value: Any) -> bool:
    """Return whether a JSON value is a whole number of 64 bits; JSON does not distinguish 1.0 from 1."""
    if isinstance(value, float):
        return value.is_integer() and _MIN_LONG <= value <= _MAX_LONG
    return isinstance(value, int) and not isinstance(value, bool) and _MIN_LONG <= value <= _MAX_LONG


def is_datetime(value: Any) -> bool:
    """Return whether a JSON value is an RFC 3339 text with a time zone."""
    if not isinstance(value, str):
        return False
    try:
        parse_rfc3339(value)
    except ValueError:
        return False
    return True


TYPE_CHECKS: Final[Mapping[SignalType, Callable[[Any], bool]]] = {
    SignalType.REAL: is_real,
    SignalType.LONG: is_long,
    SignalType.BOOL: lambda value: isinstance(value, bool),
    SignalType.STRING: lambda value: isinstance(value, str),
    SignalType.DATETIME: is_datetime,
}
"""Functions that return whether a JSON value has a signal type, by that type."""
