"""Authentication of events that the message service sends."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from shared.auth.principals import unauthenticated

CONNECTION_ID = "ce-connectionid"
SIGNATURE = "ce-signature"
_NOT_THE_SERVICE = "Only the message service may call this address; its signature or token is missing or invalid."


class TokenVerifier(Protocol):
    """Verifies tokens of one tenant for one audience."""

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token; raise WorkspaceError UNAUTHENTICATED if it is invalid."""
        ...


class SignedEvents:
    """EventSource with the access key: ``ce-signature`` is an HMAC of the connection id."""

    def __init__(self, access_key: str) -> None:
        self._key = access_key.encode()

    async def verify(self, headers: Mapping[str, str]) -> None:
        """Verify the signature; the service sends one per access key."""
        connection = headers.get(CONNECTION_ID, "")
        expected = "sha256=" + hmac.new(self._key, connection.encode(), hashlib.sha256).hexdigest()
        given = [each.strip() for each in headers.get(SIGNATURE, "").split(",")]
        if not self._key or not connection or not any(_is_equal(each, expected) for each in given):
            raise unauthenticated(_NOT_THE_SERVICE)

    def origin(self) -> str:
        """Return an asterisk: the emulator has any host name, and each event is signed."""
        return "*"


class IdentifiedEvents:
    """EventSource with the service's managed identity.

    Args:
        endpoint: URL of the message service.
        tokens: verifier for the audience that is configured for the event handler.
        object_id: object id of the service's managed identity.
    """

    def __init__(self, endpoint: str, tokens: TokenVerifier, object_id: str) -> None:
        self._endpoint = endpoint
        self._tokens = tokens
        self._object_id = object_id.casefold()

    async def verify(self, headers: Mapping[str, str]) -> None:
        """Verify the token and its object id."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._object_id:
            raise unauthenticated(_NOT_THE_SERVICE)
        claims = await self._tokens.verify(token.strip(" \t"))
        if str(claims.get("oid", "")).casefold() != self._object_id:
            raise unauthenticated(_NOT_THE_SERVICE)

    def origin(self) -> str:
        """Return the service's host name."""
        return urlsplit(self._endpoint).hostname or ""


def _is_equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
