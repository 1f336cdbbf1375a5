"""What a listener asks for."""

import re
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError, invalid
from shared.text_formats.strict_json import parse_json
from shared.timestamps import parse_rfc3339, rfc3339

MAX_WINDOW_SECONDS = 3600
_WINDOW = {"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_WINDOW_SECONDS}
MEMBER = "member"
"""Member of the state that the message service stores with a stream: whose stream it is."""

_DIGITS = re.compile(r"\d{1,4}", re.ASCII)


def _instant(text: object) -> datetime:
    return parse_rfc3339(str(text))


def _seconds(text: object) -> int:
    if not _DIGITS.fullmatch(str(text)):
        raise ValueError(f"a whole number from 1 to {MAX_WINDOW_SECONDS} is expected")
    return int(str(text))


def _window(seconds: int) -> int:
    if not 1 <= seconds <= MAX_WINDOW_SECONDS:
        raise ValueError(f"a whole number from 1 to {MAX_WINDOW_SECONDS} is expected")
    return seconds


def _given(text: object) -> object:
    """Return what was given; nothing was, where a form left a field empty."""
    return None if text == "" else text


Filter = Annotated[str | None, BeforeValidator(_given)]


class StreamFilters(BaseModel):
    """The query parameters of a stream; both lookups given, both must hold."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    connection: Filter = Field(None, description="Lookup of the one connection to listen to.")
    surface: Filter = Field(None, description="Lookup of the surface whose connections to listen to.")
    since: Annotated[datetime, BeforeValidator(_instant)] | None = Field(
        None, description="RFC 3339; what was measured since then comes first."
    )
    window_seconds: (
        Annotated[int, BeforeValidator(_seconds), AfterValidator(_window), WithJsonSchema(_WINDOW)] | None
    ) = Field(
        None, alias="windowSec", description="1 to 3600; what was measured in the last so many seconds comes first."
    )

    def replay_start(self, now: datetime) -> datetime | None:
        """Return the instant from which impulses are replayed, None for no replay.

        Raises:
            WorkspaceError: INVALID naming ``since`` and ``windowSec``, where both are given.
        """
        if self.window_seconds is None:
            return self.since
        if self.since is not None:
            raise invalid("since", "cannot be given together with windowSec")
        return now - timedelta(seconds=self.window_seconds)

    def to_state(self, now: datetime) -> dict[str, str]:
        """Return what the message service is to keep, so that the replay can be made once the stream is open.

        Raises:
            WorkspaceError: as ``begins_at``.
        """
        since = self.replay_start(now)
        if since is None:
            return {}
        kept = {"connection": self.connection, "surface": self.surface, "since": rfc3339(since)}
        return {name: value for name, value in kept.items() if value is not None}

    @classmethod
    def from_state(cls, state: bytes) -> "StreamFilters":
        """Return the filters out of what the message service kept; none where it kept nothing of ours."""
        try:
            return cls.model_validate(parse_json(state))
        except ValueError:
            return cls.model_validate({})

    def connections(self, catalog: Catalog) -> tuple[str, ...]:
        """Return the lookups of the connections that the filters select, sorted; none where they exclude each other.

        Raises:
            WorkspaceError: NOT_FOUND ``CONNECTION_NOT_FOUND`` or ``SURFACE_NOT_FOUND``.
        """
        if self.connection is not None and self.connection not in catalog.connections:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", "The workspace has no such connection.")
        selected = set(catalog.connections)
        if self.surface is not None:
            surface = catalog.surfaces.get(self.surface)
            if surface is None:
                raise WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", "The workspace has no such surface.")
            selected &= set(surface.value.connections)
        if self.connection is not None:
            selected &= {self.connection}
        return tuple(sorted(selected))


def read_member_id(state: bytes) -> str:
    """Return the member id in the state that the message service stores with a stream; empty when there is none."""
    try:
        document = parse_json(state)
    except ValueError:
        return ""
    member_id = document.get(MEMBER) if isinstance(document, dict) else None
    return member_id if isinstance(member_id, str) else ""
