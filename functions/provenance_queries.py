"""What provenance routes read from query strings: filters that are strict, and numbers and dates that fall back."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shared.http.unknown_names import IGNORED
from shared.provenance.models import ScopeKey
from shared.provenance.ports import Filters
from shared.timestamps import rfc3339

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_PLAIN = re.compile(r"-?[0-9]{1,400}")
_BLANK_OFFSET = re.compile(r"(T[0-9:.]+) (?=[0-9]{2}:?[0-9]{2}$)")
_FAR = 2**62


def _sequence(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError("a whole number is expected")
    return _near(text)


Sequence = Annotated[
    int | None, BeforeValidator(_sequence), WithJsonSchema({"type": "integer", "format": "int64", "minimum": 1})
]


def _whole(least: int) -> WithJsonSchema:
    """Return what clients shall send, though what is no such number falls back to the default."""
    return WithJsonSchema({"type": "integer", "format": "int64", "minimum": least})


class WindowQuery(BaseModel):
    """A window of dates and sequences, and a page; dates, limit and offset that do not parse are ignored and named."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    scope_key: ScopeKey = Field(None, alias="scopeKey", description="Scope; the workspace's own records without it.")
    start_date: str | None = Field(None, alias="startDate", description="ISO 8601, inclusive; UTC without a zone.")
    end_date: str | None = Field(None, alias="endDate", description="ISO 8601, inclusive; UTC without a zone.")
    limit: Annotated[str | None, _whole(1)] = Field(
        None,
        description="Most records to return; its default where it is no such number, its maximum where it is more.",
    )


class SequenceQuery(WindowQuery):
    """A window that can also be cut by sequence."""

    from_sequence: Sequence = Field(None, alias="fromSequence", description="First sequence, inclusive.")
    to_sequence: Sequence = Field(None, alias="toSequence", description="Last sequence, inclusive.")
    offset: Annotated[str | None, _whole(0)] = Field(
        None, description="Records to skip; not stable while records are appended."
    )


def _near(text: str) -> int:
    """Return a whole number, one that no chain reaches cut to where stores can still compare it."""
    return max(-_FAR, min(int(text), _FAR))


@dataclass(slots=True)
class Lenient:
    """Reads what falls back to its default, and keeps the names of what did.

    Attributes:
        ignored: names of parameters that did not parse.
    """

    ignored: list[str] = field(default_factory=list)

    def number(self, name: str, text: str | None, *, least: int, default: int) -> int:
        """Return a whole number, the default when it is absent, no plain number, or below the least."""
        if text is None:
            return default
        if _PLAIN.fullmatch(text) and int(text) >= least:
            return _near(text)
        self.ignored.append(name)
        return default

    def instant(self, name: str, text: str | None) -> str:
        """Return an instant as records write it, empty when it is absent or does not parse."""
        if text is None:
            return ""
        try:
            # A plus sign that nobody encoded arrives as a blank.
            instant = datetime.fromisoformat(_BLANK_OFFSET.sub(r"\1+", text.upper()))
            return rfc3339(instant if instant.tzinfo else instant.replace(tzinfo=UTC))
        except (ValueError, OverflowError):
            self.ignored.append(name)
            return ""

    def window(self, query: WindowQuery) -> Filters:
        """Return a query's dates and sequences as filters."""
        sequences = query if isinstance(query, SequenceQuery) else None
        return Filters(
            start=self.instant("startDate", query.start_date),
            end=self.instant("endDate", query.end_date),
            from_sequence=None if sequences is None else sequences.from_sequence,
            to_sequence=None if sequences is None else sequences.to_sequence,
        )

    def headers(self) -> dict[str, str]:
        """Return the header that names what was ignored, nothing when nothing was."""
        return {IGNORED: ", ".join(self.ignored)} if self.ignored else {}


def present(**named: str | None) -> dict[str, str]:
    """Return the filters that were given; a blank one counts as left out."""
    return {name: value for name, value in named.items() if value}
