"""Query parameters of a live stream: connections, and the start of the replay of earlier messages."""

import re
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.text_formats.strict_json import parse_json
from shared.timestamps import format_rfc3339, parse_rfc3339

MAX_WINDOW_SECONDS = 3600
_WINDOW = {"type": "integer", "format": "int32", "minimum": 1, "maximum": MAX_WINDOW_SECONDS}
MEMBER = "member"
"""Property of a stream's state in Web PubSub with the member id of the listener."""

_DIGITS = re.compile(r"\d{1,4}", re.ASCII)


def _parse_instant(text: object) -> datetime:
    return parse_rfc3339(str(text))


def _parse_window_seconds(text: object) -> int:
    if not _DIGITS.fullmatch(str(text)):
        raise ValueError(f"must be an integer between 1 and {MAX_WINDOW_SECONDS}")
    return int(str(text))


def _require_valid_window_seconds(seconds: int) -> int:
    if not 1 <= seconds <= MAX_WINDOW_SECONDS:
        raise ValueError(f"must be an integer between 1 and {MAX_WINDOW_SECONDS}")
    return seconds


class StreamFilters(BaseModel):
    """Query parameters of a live stream; messages must match both connection and surface if both are given."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    connection: str | None = Field(None, min_length=1, description="Lookup of the only connection in the stream.")
    surface: str | None = Field(
        None, min_length=1, description="Lookup of the surface whose connections are in the stream."
    )
    since: Annotated[datetime, BeforeValidator(_parse_instant)] | None = Field(
        None, description="RFC 3339; impulses measured since then are replayed first."
    )
    window_seconds: (
        Annotated[
            int,
            BeforeValidator(_parse_window_seconds),
            AfterValidator(_require_valid_window_seconds),
            WithJsonSchema(_WINDOW),
        ]
        | None
    ) = Field(
        None,
        alias="windowSec",
        description="1 to 3600; impulses measured in this number of seconds before now are replayed first.",
    )

    def compute_replay_start(self, now: datetime) -> datetime | None:
        """Return the instant at which the replay starts; None without a replay.

        Raises:
            WorkspaceError: INVALID if both ``since`` and ``windowSec`` are given.
        """
        if self.window_seconds is None:
            return self.since
        if self.since is not None:
            raise build_invalid_field_error("since", "must not be combined with windowSec")
        return now - timedelta(seconds=self.window_seconds)

    def to_stream_state(self, now: datetime) -> dict[str, str]:
        """Return the data for the replay as a JSON object, which Web PubSub stores with the stream.

        The object contains connection, surface and start (``since``, which is computed if ``windowSec`` is given). It
        is empty if the filters request no replay.

        Raises:
            WorkspaceError: the same errors as :meth:`compute_replay_start`.
        """
        since = self.compute_replay_start(now)
        if since is None:
            return {}
        state = {"connection": self.connection, "surface": self.surface, "since": format_rfc3339(since)}
        return {name: value for name, value in state.items() if value is not None}

    @classmethod
    def from_stream_state(cls, stream_state: bytes) -> "StreamFilters":
        """Parse the filters that Web PubSub stored with a stream; return empty filters if none are stored."""
        try:
            return cls.model_validate(parse_json(stream_state))
        except ValueError:
            return cls.model_validate({})

    def select_connection_lookups(self, catalog: Catalog) -> tuple[str, ...]:
        """Return the sorted lookups (ids in URLs) of the connections that the filters select.

        The result is empty if the filters name a connection and a surface that does not contain this connection.

        Raises:
            WorkspaceError: NOT_FOUND ``CONNECTION_NOT_FOUND`` or ``SURFACE_NOT_FOUND``.
        """
        if self.connection is not None and self.connection not in catalog.connections:
            detail = f"The workspace has no connection {self.connection[:64]}."
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", detail)
        selected = set(catalog.connections)
        if self.surface is not None:
            surface = catalog.surfaces.get(self.surface)
            if surface is None:
                detail = f"The workspace has no surface {self.surface[:64]}."
                raise WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", detail)
            selected &= set(surface.value.connections)
        if self.connection is not None:
            selected &= {self.connection}
        return tuple(sorted(selected))


def read_member_id(stream_state: bytes) -> str:
    """Return the member id that Web PubSub stored with a stream; an empty text if none is stored."""
    try:
        document = parse_json(stream_state)
    except ValueError:
        return ""
    member_id = document.get(MEMBER) if isinstance(document, dict) else None
    return member_id if isinstance(member_id, str) else ""
