"""Tests of authenticating events of the message service Web PubSub."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.live_stream.event_sources import IdentifiedEvents, SignedEvents

KEY = "k" * 32


def sign_connection(connection: str, key: str = KEY) -> str:
    """Return the signature of a connection id."""
    return "sha256=" + hmac.new(key.encode(), connection.encode(), hashlib.sha256).hexdigest()


class Tokens:
    """Fake verifier that accepts one token."""

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of the token."""
        if token != "valid":
            raise WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", "The token is invalid.")
        return {"oid": "ABC"}


async def is_accepted(source: SignedEvents | IdentifiedEvents, headers: dict[str, str]) -> bool:
    """Return whether an event with the given headers is accepted."""
    try:
        await source.require_call_from_web_pubsub(headers)
    except WorkspaceError as error:
        return error.kind is not Kind.UNAUTHENTICATED
    return True


@pytest.mark.parametrize(
    ("connection", "signature", "expected"),
    [
        ("c1", sign_connection("c1"), True),
        ("c1", f"{sign_connection('c1', 'old' * 11)}, {sign_connection('c1')}", True),
        ("c1", sign_connection("c2"), False),
        ("c1", sign_connection("c1", "other"), False),
        ("c1", "", False),
        ("", sign_connection(""), False),
        ("c1", "ü", False),
    ],
)
async def test_an_event_needs_a_signature_of_its_connection_id(
    connection: str, signature: str, *, expected: bool
) -> None:
    """An event needs one valid signature of its connection id, because Web PubSub signs with each of its two keys."""
    headers = {"ce-connectionid": connection, "ce-signature": signature}
    assert await is_accepted(SignedEvents(KEY), headers) is expected


async def test_without_a_key_all_events_are_rejected() -> None:
    """If no key is configured, all events are rejected, even those signed with an empty key."""
    headers = {"ce-connectionid": "c1", "ce-signature": sign_connection("c1", "")}
    assert not await is_accepted(SignedEvents(""), headers)


@pytest.mark.parametrize(
    ("header", "object_id", "expected"),
    [
        ("Bearer valid", "abc", True),
        ("bearer  valid", "ABC", True),
        ("Bearer valid", "other", False),
        ("Bearer invalid", "abc", False),
        ("Basic valid", "abc", False),
        ("", "abc", False),
        ("Bearer valid", "", False),
    ],
)
async def test_an_event_token_must_belong_to_the_managed_identity(
    header: str, object_id: str, *, expected: bool
) -> None:
    """A token of another identity in the tenant is rejected, because Web PubSub does not use it."""
    source = IdentifiedEvents("https://pubsub.example/", Tokens(), object_id)
    assert await is_accepted(source, {"authorization": header}) is expected


def test_the_allowed_origin_is_the_host_of_the_service() -> None:
    """A validation request of Web PubSub must name the service's host; a request of the emulator may name any host."""
    identified = IdentifiedEvents("https://pubsub.example:443/", Tokens(), "abc")
    assert (identified.get_webhook_allowed_origin(), SignedEvents(KEY).get_webhook_allowed_origin()) == (
        "pubsub.example",
        "*",
    )
