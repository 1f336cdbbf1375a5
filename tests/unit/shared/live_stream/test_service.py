"""Tests of admitting listeners, their credentials, and closing streams without a valid token."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.backends.embedded.quotas import SCHEMA, SqliteQuotaStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import Audience
from shared.live_stream.event_sources import IdentifiedEvents, SignedEvents
from shared.live_stream.filters import StreamFilters
from shared.live_stream.ports import OpenStream
from shared.live_stream.service import Listener, LiveStream, StreamCredential, extract_credential
from shared.live_stream.stream_quota import StreamQuota

KEY = "an access key for tests alone"


def test_the_header_has_priority_over_other_credentials() -> None:
    """A credential in the header has priority over a query parameter, and the parameter over a subprotocol."""
    both = ["chat", "bearer.s"]
    assert extract_credential("Bearer h", ["q"], both) == StreamCredential("Bearer h", "bearer.s")
    assert extract_credential("", ["q"], both) == StreamCredential("Bearer q", "bearer.s")
    assert extract_credential("", [], both) == StreamCredential("Bearer s", "bearer.s")
    assert extract_credential("", ["q"], []) == StreamCredential("Bearer q", "")
    assert extract_credential("", [], ["chat"]) == StreamCredential("", "")


@given(
    st.text(min_size=1),
    st.text("abcdef0123456789", max_size=32),
    st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1)).map(  # noqa: DTZ001  made aware below
        lambda instant: instant.replace(microsecond=0, tzinfo=UTC)
    ),
    st.text(ascii_letters + digits + "-_", max_size=43),
)
def test_user_id_is_parsed_to_the_same_listener(member: str, token: str, expires_at: datetime, key: str) -> None:
    """The user id of a listener is ASCII text and is parsed to the same listener, whatever its member id is."""
    listener = Listener(member, token, expires_at, key)
    assert listener.user_id.isascii()
    assert listener.user_id.isprintable()
    assert Listener.from_user_id(listener.user_id) == listener


@given(st.text())
def test_any_text_is_a_user_id_or_rejected(name: str) -> None:
    """Any text is parsed as the user id of a listener or rejected, and causes no other error."""
    try:
        assert Listener.from_user_id(name).member_id
    except WorkspaceError as error:
        assert error.code == "UNAUTHENTICATED"  # noqa: PT017  both outcomes are valid


@given(st.text())
def test_window_sec_must_be_between_1_and_3600(text: str) -> None:
    """``windowSec`` must be an integer between 1 and 3600 in ASCII digits."""
    good = text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= 3600
    try:
        assert StreamFilters.model_validate({"windowSec": text}).window_seconds == int(text)
        assert good
    except ValidationError:
        assert not good


def test_window_sec_and_since_cannot_be_combined() -> None:
    """A request with both ``windowSec`` and ``since`` is rejected, and the error names the invalid field."""
    filters = StreamFilters.model_validate({"windowSec": "5", "since": "2026-01-01T00:00:00Z"})
    with pytest.raises(WorkspaceError) as refused:
        filters.compute_replay_start(datetime.now(UTC))
    assert refused.value.members["errors"]


def test_filters_select_nothing_in_an_empty_workspace() -> None:
    """If a workspace has no connections, any filter selects none, without an error."""
    assert StreamFilters().select_connection_lookups(Catalog()) == ()


def _sign_connection(connection: str, key: str = KEY) -> str:
    return "sha256=" + hmac.new(key.encode(), connection.encode(), hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("key", "headers", "good"),
    [
        (KEY, {"ce-connectionid": "c", "ce-signature": _sign_connection("c")}, True),
        (
            KEY,
            {"ce-connectionid": "c", "ce-signature": f"{_sign_connection('c', 'other')},{_sign_connection('c')}"},
            True,
        ),
        (KEY, {"ce-connectionid": "d", "ce-signature": _sign_connection("c")}, False),
        (KEY, {"ce-connectionid": "c", "ce-signature": _sign_connection("c", "other")}, False),
        (KEY, {"ce-connectionid": "", "ce-signature": _sign_connection("")}, False),
        (KEY, {"ce-connectionid": "c", "ce-signature": "sha256=é"}, False),
        (KEY, {}, False),
        ("", {"ce-connectionid": "c", "ce-signature": _sign_connection("c", "")}, False),
    ],
)
async def test_wrongly_signed_events_are_rejected(key: str, headers: dict[str, str], good: bool) -> None:  # noqa: FBT001  a column
    """An event of Web PubSub must be signed with the access key; if no key is configured, all events are rejected."""
    if good:
        await SignedEvents(key).require_call_from_web_pubsub(headers)
        return
    with pytest.raises(WorkspaceError) as refused:
        await SignedEvents(key).require_call_from_web_pubsub(headers)
    assert refused.value.code == "UNAUTHENTICATED"


class Tokens:
    """Fake token verifier that returns the test's claims."""

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims, with the token as object id."""
        return {"oid": token}


@pytest.mark.parametrize(
    ("identity", "authorization", "good"),
    [
        ("AB-1", "Bearer ab-1", True),
        ("ab-1", "Bearer ab-2", False),
        ("ab-1", "Basic ab-1", False),
        ("ab-1", "", False),
        ("", "Bearer ", False),
    ],
)
async def test_events_of_another_identity_are_rejected(identity: str, authorization: str, good: bool) -> None:  # noqa: FBT001  a column
    """On Azure, an event of Web PubSub must have a token of the service's managed identity."""
    source = IdentifiedEvents("https://plant-a.webpubsub.azure.com", Tokens(), identity)
    assert source.get_webhook_allowed_origin() == "plant-a.webpubsub.azure.com"
    if good:
        await source.require_call_from_web_pubsub({"authorization": authorization})
        return
    with pytest.raises(WorkspaceError):
        await source.require_call_from_web_pubsub({"authorization": authorization})


FOREVER = datetime(9000, 1, 1, tzinfo=UTC)


class Streams:
    """Fake message service with open streams; some cannot be closed."""

    def __init__(self, members: list[str], stuck: set[str]) -> None:
        self.open = members
        self.stuck = stuck
        self.closed: dict[str, str] = {}

    async def iterate_streams(self, group: str) -> AsyncIterator[OpenStream]:
        """Yield the open streams, each with the user id of its member."""
        assert group == "_streams"
        for member in self.open:
            yield OpenStream(member, Listener(member, "token", FOREVER).user_id)

    async def disconnect(self, connection_id: str, reason: str) -> None:
        """Close a stream, or raise an error if the test has set that it cannot be closed."""
        if connection_id in self.stuck:
            raise WorkspaceError(
                Kind.INVALID, "LIVE_MESSAGE_REFUSED", "The message service rejects closing the stream."
            )
        self.closed[connection_id] = reason

    async def publish(self, group: str, text: bytes) -> None:
        """Do nothing, because no test reads the messages."""
        raise AssertionError(group, text)

    async def has_streams(self, group: str) -> bool:
        """Return True, because each group counts as occupied."""
        return bool(group)

    async def create_stream_url(self, user_id: str, expires_at: datetime) -> str:
        """Return an empty URL, because no test opens a stream."""
        raise AssertionError(user_id, expires_at)

    async def close(self) -> None:
        """Do nothing: this fake service holds no resources."""


async def _resume_principal(member_id: str, token_id: str, expires_at: datetime, key_id: str) -> Principal:
    """Reject each member's credential; if the member id begins with ``unknown``, raise an outage of the store."""
    if member_id.startswith("unknown"):
        raise WorkspaceError(Kind.UNAVAILABLE, "STORE_UNAVAILABLE", "The store does not respond.")
    raise WorkspaceError(
        Kind.UNAUTHENTICATED, "UNAUTHENTICATED", f"{member_id}'s access has ended ({token_id}{key_id})."
    )


async def _build_catalog() -> Catalog:
    return Catalog()


def _build_live_stream(streams: Streams) -> LiveStream:
    quota = StreamQuota(SqliteQuotaStore(SqliteDatabase(Path("unused"), SCHEMA)), _build_catalog, streams)
    return LiveStream(_build_catalog, streams, Audience(streams), _resume_principal, quota)


async def test_unauthorised_streams_are_closed() -> None:
    """Each stream without a valid token is closed with the reason."""
    streams = Streams(["a", "b", "c"], set())
    assert await _build_live_stream(streams).close_and_count_unauthorised_streams() == 3
    assert streams.closed["a"] == "a's access has ended (token)."


@pytest.mark.parametrize("stuck", [{"a"}, {"a", "b"}, {"c"}])
async def test_a_stream_that_cannot_be_closed_does_not_block_others(stuck: set[str]) -> None:
    """If a stream cannot be checked or closed, all other streams are still closed, and then the error is raised."""
    streams = Streams(["a", "unknown", "b", "c", "d"], stuck)
    with pytest.raises(WorkspaceError):
        await _build_live_stream(streams).close_and_count_unauthorised_streams()
    assert set(streams.closed) == {"a", "b", "c", "d"} - stuck


async def test_link_is_restricted_to_the_right_to_listen() -> None:
    """A link to a stream gives only the right to listen, not the member's other rights."""
    member = Principal("a", "a", "A", frozenset(AccessRight), CredentialKind.JWT, "token", FOREVER, key_id="key")

    async def resume_principal(member_id: str, token_id: str, expires_at: datetime, key_id: str) -> Principal:
        assert (member_id, token_id, expires_at, key_id) == ("a", "token", FOREVER, "key")
        return member

    streams = Streams([], set())
    quota = StreamQuota(SqliteQuotaStore(SqliteDatabase(Path("unused"), SCHEMA)), _build_catalog, streams)
    live = LiveStream(_build_catalog, streams, Audience(streams), resume_principal, quota)
    assert (await live.authenticate_stream_user(Listener.from_principal(member).user_id)).rights == {
        AccessRight.LIVE_STREAM_READ
    }
