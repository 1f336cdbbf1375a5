"""Tests of admitting listeners, and of closing streams without a valid token."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.backends.embedded.places import SCHEMA, SqlitePlaceStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import Audience
from shared.live_stream.credentials import Listener
from shared.live_stream.ports import OpenStream
from shared.live_stream.service import LiveStream
from shared.live_stream.stream_quota import StreamQuota

FOREVER = datetime(9000, 1, 1, tzinfo=UTC)


class Streams:
    """Fake message service with open streams, some of which cannot be closed."""

    def __init__(self, members: list[str], stuck: set[str]) -> None:
        self.open = members
        self.stuck = stuck
        self.closed: dict[str, str] = {}

    async def list_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Yield the open streams, each named after its member."""
        assert group == "_streams"
        for member in self.open:
            yield OpenStream(member, Listener(member, "token", FOREVER).name)

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream, or raise an error for a stream that cannot be closed."""
        if connection_id in self.stuck:
            raise WorkspaceError(Kind.INVALID, "LIVE_MESSAGE_REFUSED", "The message service refuses this.")
        self.closed[connection_id] = reason

    async def publish(self, group: str, text: bytes) -> None:
        """Ignore messages."""
        raise AssertionError(group, text)

    async def has_streams(self, group: str) -> bool:
        """Return True."""
        return bool(group)

    async def link(self, user: str, expires_at: datetime) -> str:
        """Return an empty link, because no test opens a stream."""
        raise AssertionError(user, expires_at)

    async def close(self) -> None:
        """Do nothing: this fake service holds no resources."""


async def _resume(member_id: str, token_id: str, expires_at: datetime) -> Principal:
    """Reject the credentials of every member; for some members raise an unexpected error."""
    if member_id.startswith("unknown"):
        raise WorkspaceError(Kind.UNAVAILABLE, "STORE_UNAVAILABLE", "The store does not respond.")
    raise WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", f"{member_id}'s access has ended ({token_id}).")


async def _build_catalog() -> Catalog:
    return Catalog()


def _build_live_stream(streams: Streams) -> LiveStream:
    quota = StreamQuota(SqlitePlaceStore(SqliteDatabase(Path("unused"), SCHEMA)), _build_catalog, streams)
    return LiveStream(_build_catalog, streams, Audience(streams), _resume, quota)


async def test_unauthorised_streams_are_closed() -> None:
    """Every stream without a valid token is closed with the reason."""
    streams = Streams(["a", "b", "c"], set())
    assert await _build_live_stream(streams).close_expired() == 3
    assert streams.closed["a"] == "a's access has ended (token)."


@pytest.mark.parametrize("stuck", [{"a"}, {"a", "b"}, {"c"}])
async def test_failing_stream_does_not_block_others(stuck: set[str]) -> None:
    """If a stream cannot be checked or closed, other streams are still closed, and the error is raised afterwards."""
    streams = Streams(["a", "unknown", "b", "c", "d"], stuck)
    with pytest.raises(WorkspaceError):
        await _build_live_stream(streams).close_expired()
    assert set(streams.closed) == {"a", "b", "c", "d"} - stuck


async def test_link_is_restricted_to_the_right_to_listen() -> None:
    """A link to a stream grants only the right to listen, not the member's other rights."""
    member = Principal("a", "a", "A", frozenset(AccessRight), CredentialKind.JWT, "token", FOREVER)

    async def resume(member_id: str, token_id: str, expires_at: datetime) -> Principal:
        assert (member_id, token_id, expires_at) == ("a", "token", FOREVER)
        return member

    streams = Streams([], set())
    quota = StreamQuota(SqlitePlaceStore(SqliteDatabase(Path("unused"), SCHEMA)), _build_catalog, streams)
    live = LiveStream(_build_catalog, streams, Audience(streams), resume, quota)
    assert (await live.resume(Listener.from_principal(member).name)).rights == {AccessRight.LIVE_STREAM_READ}
