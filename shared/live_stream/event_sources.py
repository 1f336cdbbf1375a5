"""How the message service proves that an event is its own."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from shared.auth.principals import unauthenticated

CONNECTION_ID = "ce-connectionid"
SIGNATURE = "ce-signature"
_NOT_THE_SERVICE = "This address is for the message service alone."


class TokenVerifier(Protocol):
    """Verifies tokens of one tenant for one audience."""

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token; raise WorkspaceError UNAUTHENTICATED where it is not valid."""
        ...


class SignedEvents:
    """The EventSource port over the access key: ``ce-signature`` is an HMAC of the connection id."""

    def __init__(self, access_key: str) -> None:
        self._key = access_key.encode()

    async def verify(self, headers: Mapping[str, str]) -> None:
        """Check the signature; the service sends one for each of its keys."""
        connection = headers.get(CONNECTION_ID, "")
        expected = "sha256=" + hmac.new(self._key, connection.encode(), hashlib.sha256).hexdigest()
        given = [each.strip() for each in headers.get(SIGNATURE, "").split(",")]
        if not self._key or not connection or not any(_same(each, expected) for each in given):
            raise unauthenticated(_NOT_THE_SERVICE)

    def origin(self) -> str:
        """Return the asterisk: the stand-in has as many names as its machine, and each event is signed."""
        return "*"


class IdentifiedEvents:
    """The EventSource port over the service's managed identity.

    Args:
        endpoint: of the service.
        tokens: verifies tokens for the audience that the event handler is configured with.
        object_id: of the service's identity.
    """

    def __init__(self, endpoint: str, tokens: TokenVerifier, object_id: str) -> None:
        self._endpoint = endpoint
        self._tokens = tokens
        self._object_id = object_id.casefold()

    async def verify(self, headers: Mapping[str, str]) -> None:
        """Check the token, and whose it is."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._object_id:
            raise unauthenticated(_NOT_THE_SERVICE)
        claims = await self._tokens.verify(token.strip(" \t"))
        if str(claims.get("oid", "")).casefold() != self._object_id:
            raise unauthenticated(_NOT_THE_SERVICE)

    def origin(self) -> str:
        """Return the service's host name."""
        return urlsplit(self._endpoint).hostname or ""


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
