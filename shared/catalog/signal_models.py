"""Models of the signals of a connection: the fields of its messages with their types, units and limits."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from shared.catalog.fields import JsonPointer, Model, Name, PrintableText

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
