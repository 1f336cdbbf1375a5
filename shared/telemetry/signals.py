"""Signals (typed payload fields): comparison of values with declared types, and proposal of signals from messages."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from shared.catalog.signal_models import MAX_SIGNALS, SignalDefinition, SignalType
from shared.telemetry.pointers import Pointer, format_pointer, parse_pointer, resolve_pointer
from shared.text_formats.large_json import LongInteger
from shared.timestamps import parse_rfc3339
from shared.validation.names import MAX_NAME, find_name_error

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
    return tuple(SignalCheck(parse_pointer(signal.pointer), TYPE_CHECKS[signal.type]) for signal in signals)


def has_type_mismatch(checks: Sequence[SignalCheck], payload: Mapping[str, Any]) -> bool:
    """Return whether a payload has a value of a wrong type for its signal; missing and null values are valid."""
    for check in checks:
        value = resolve_pointer(payload, check.pointer)
        if value is not None and not check.has_type(value):
            return True
    return False


def is_real_number(value: Any) -> bool:
    """Return whether a JSON value is valid for the signal type ``real``, which is any number except a boolean."""
    return isinstance(value, int | float | LongInteger) and not isinstance(value, bool)


def is_whole_number_of_64_bits(value: Any) -> bool:
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
    SignalType.REAL: is_real_number,
    SignalType.LONG: is_whole_number_of_64_bits,
    SignalType.BOOL: lambda value: isinstance(value, bool),
    SignalType.STRING: lambda value: isinstance(value, str),
    SignalType.DATETIME: is_datetime,
}
"""Functions that return whether a JSON value has a signal type, by that type."""


MAX_POINTER: Final = 512
"""Maximum length of a signal's JSON Pointer in characters."""

_SHARE_DIGITS: Final = 4


@dataclass(slots=True)
class _FieldStatistics:
    """Statistics of the values at one JSON Pointer in several payloads.

    Attributes:
        types: number of values by type.
        low: lowest number; None without a number.
        high: highest number; None without a number.
    """

    types: Counter[SignalType] = field(default_factory=Counter)
    low: float | None = None
    high: float | None = None

    def add_value(self, value: Any) -> None:
        """Add a payload value to the statistics: count its type, and update the lowest and highest number."""
        kind = _determine_signal_type(value)
        self.types[kind] += 1
        if kind in (SignalType.LONG, SignalType.REAL):
            self.low = value if self.low is None else min(self.low, value)
            self.high = value if self.high is None else max(self.high, value)

    def choose_type(self) -> SignalType:
        """Return the most frequent signal type of the values.

        If ``real`` occurs, ``long`` values count as ``real``; if ``string`` occurs, ``datetime`` values count as
        ``string``.
        """
        types = Counter(self.types)
        for narrow, wide in ((SignalType.LONG, SignalType.REAL), (SignalType.DATETIME, SignalType.STRING)):
            if types[wide]:
                types[wide] += types.pop(narrow, 0)
        return types.most_common(1)[0][0]


def propose_signals_as_json(payloads: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Propose signals (typed fields) for payloads: each text, number, boolean and time in objects of any depth.

    Arrays are not signals. If there are more than 1,000 fields, the most frequent ones are proposed.

    Args:
        payloads: payloads of messages, at least one.

    Returns:
        Signals as JSON, sorted by pointer; `share` is the fraction of messages that contain a value.
    """
    fields: dict[Pointer, _FieldStatistics] = {}
    for payload in payloads:
        for pointer, value in _iterate_pointers_and_scalars(payload):
            if pointer not in fields:
                fields[pointer] = _FieldStatistics()
            fields[pointer].add_value(value)
    usual = sorted(fields, key=lambda pointer: (-fields[pointer].types.total(), pointer))
    selected = [pointer for pointer in usual if _has_valid_pointer_length(pointer)][:MAX_SIGNALS]
    names = _build_signal_names(selected)
    return [
        _signal_to_json(names[pointer], pointer, fields[pointer], len(payloads))
        for pointer in sorted(selected)
        if pointer in names
    ]


def _iterate_pointers_and_scalars(payload: Mapping[str, Any]) -> Iterator[tuple[Pointer, Any]]:
    """Yield the JSON Pointer and the value of each scalar in a payload, in objects of any depth."""
    pending: list[tuple[Pointer, Mapping[str, Any]]] = [((), payload)]
    while pending:
        at, members = pending.pop()
        for name, value in members.items():
            if isinstance(value, Mapping):
                pending.append(((*at, name), value))
            elif value is not None and not isinstance(value, list):
                yield (*at, name), value


def _determine_signal_type(value: Any) -> SignalType:
    if isinstance(value, bool):
        return SignalType.BOOL
    if is_whole_number_of_64_bits(value):
        return SignalType.LONG
    if is_real_number(value):
        return SignalType.REAL
    return SignalType.DATETIME if is_datetime(value) else SignalType.STRING


def _has_valid_pointer_length(pointer: Pointer) -> bool:
    return len(format_pointer(pointer)) <= MAX_POINTER


def _build_signal_names(pointers: Sequence[Pointer]) -> dict[Pointer, str]:
    """Return a unique signal name for each pointer: its last token or, if several end with this token, its path.

    A pointer without a valid name is missing in the result.
    """
    last = Counter(pointer[-1] for pointer in pointers)
    names: dict[str, Pointer] = {}
    for pointer in pointers:
        name = pointer[-1] if last[pointer[-1]] == 1 else ".".join(pointer)
        if 1 <= len(name) <= MAX_NAME and find_name_error(name) is None:
            names.setdefault(name, pointer)
    return {pointer: name for name, pointer in names.items()}


def _signal_to_json(name: str, pointer: Pointer, statistics: _FieldStatistics, message_count: int) -> dict[str, Any]:
    kind = statistics.choose_type()
    numeric = kind in (SignalType.LONG, SignalType.REAL)
    return {
        "name": name,
        "pointer": format_pointer(pointer),
        "type": kind,
        "share": round(statistics.types.total() / message_count, _SHARE_DIGITS),
        "min": statistics.low if numeric else None,
        "max": statistics.high if numeric else None,
    }
