"""Signals (typed payload fields) of a connection: their types, units and limits, and the rules between them."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from shared.catalog.fields import JsonPointer, Model, Name, PrintableText
from shared.catalog.problems import DocumentPath, FieldViolation, Violation

MAX_SIGNALS: Final = 1_000
"""Maximum number of signals of a connection, because each message is checked against all of them."""

_MAX_UNIT: Final = 64
_MAX_DESCRIPTION: Final = 1_024

Unit = Annotated[PrintableText, StringConstraints(min_length=1, max_length=_MAX_UNIT)]


class SignalType(StrEnum):
    """Type of the values of a signal: the name of a scalar type of Kusto."""

    REAL = "real"
    LONG = "long"
    BOOL = "bool"
    STRING = "string"
    DATETIME = "datetime"


NUMERIC: Final = frozenset({SignalType.REAL, SignalType.LONG})
"""Signal types whose values can have limits."""


class SignalDefinition(Model):
    """Field of a connection's payloads."""

    name: Name
    pointer: JsonPointer = Field(min_length=1, description="JSON Pointer to the value in the payload.")
    type: SignalType
    unit: Unit | None = Field(None, description="Unit of the values, for example bar or °C.")
    description: Annotated[str, StringConstraints(max_length=_MAX_DESCRIPTION)] | None = None
    min: float | None = Field(None, description="Lowest expected value; only with type real or long.")
    max: float | None = Field(None, description="Highest expected value; only with type real or long.")


def check_signals(path: DocumentPath, signals: Sequence[SignalDefinition]) -> Iterator[Violation]:
    """Yield the violations of rules between the signals (typed payload fields) of a connection.

    Args:
        path: path of the list of signals in the workspace document.
        signals: signals whose single fields are valid.
    """
    names: set[str] = set()
    pointers: set[str] = set()
    for index, signal in enumerate(signals):
        place = (*path, index)
        if signal.name in names:
            yield (*place, "name"), "is already the name of another signal of this connection"
        if signal.pointer in pointers:
            yield (*place, "pointer"), "is already the pointer of another signal of this connection"
        names.add(signal.name)
        pointers.add(signal.pointer)
        yield from (((*place, field), rule) for field, rule in _check_signal_limits(signal))


def _check_signal_limits(signal: SignalDefinition) -> Iterator[FieldViolation]:
    if signal.type not in NUMERIC:
        limits = (("min", signal.min), ("max", signal.max))
        yield from ((field, "is allowed only with type real or long") for field, value in limits if value is not None)
    elif signal.min is not None and signal.max is not None and signal.min > signal.max:
        yield "min", "must not be above max"
