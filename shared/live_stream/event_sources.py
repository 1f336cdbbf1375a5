"""Authentication of the HTTP events that the message service (Azure Web PubSub or its emulator) sends."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from shared.auth.principals import build_unauthenticated_error

CONNECTION_ID = "ce-connectionid"
SIGNATURE = "ce-signature"
_NOT_THE_SERVICE = "Only Azure Web PubSub may call this address; the signature or token is missing or invalid."


type TokenClaims = Mapping[str, Any]


class TokenVerifier(Protocol):
    """Verifier of Entra ID tokens of one tenant for one audience."""

    async def verify(self, token: str) -> TokenClaims:
        """Return the claims of a token; raise WorkspaceError UNAUTHENTICATED if the token is invalid."""
        ...


class SignedEvents:
    """Authenticator of Web PubSub's events by ``ce-signature``, an HMAC of the connection id with the access key."""

    def __init__(self, access_key: str) -> None:
        self._key = access_key.encode()

    async def require_call_from_web_pubsub(self, headers: Mapping[str, str]) -> None:
        """Verify that at least one signature of a call is valid; Web PubSub signs with each of its access keys."""
        connection = headers.get(CONNECTION_ID, "")
        expected = "sha256=" + hmac.new(self._key, connection.encode(), hashlib.sha256).hexdigest()
        given = [each.strip() for each in headers.get(SIGNATURE, "").split(",")]
        if not self._key or not connection or not any(_is_same_signature(each, expected) for each in given):
            raise build_unauthenticated_error(_NOT_THE_SERVICE)

    def get_webhook_allowed_origin(self) -> str:
        """Return an asterisk, which means any host: the emulator can have any host name, and its events are signed."""
        return "*"


class IdentifiedEvents:
    """Authenticator of Web PubSub's events by the token of Web PubSub's managed identity.

    Args:
        endpoint: URL of Web PubSub.
        tokens: verifier for the audience that is configured for the event handler.
        object_id: object id of Web PubSub's managed identity.
    """

    def __init__(self, endpoint: str, tokens: TokenVerifier, object_id: str) -> None:
        self._endpoint = endpoint
        self._tokens = tokens
        self._object_id = object_id.casefold()

    async def require_call_from_web_pubsub(self, headers: Mapping[str, str]) -> None:
        """Verify the bearer token of a call, and that it belongs to the managed identity of Web PubSub."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._object_id:
            raise build_unauthenticated_error(_NOT_THE_SERVICE)
        claims = await self._tokens.verify(token.strip(" \t"))
        if str(claims.get("oid", "")).casefold() != self._object_id:
            raise build_unauthenticated_error(_NOT_THE_SERVICE)

    def get_webhook_allowed_origin(self) -> str:
        """Return the host name of Web PubSub, the only host from which events are accepted."""
        return urlsplit(self._endpoint).hostname or ""


def _is_same_signature(given_signature: str, expected_signature: str) -> bool:
    return hmac.compare_digest(given_signature.encode(), expected_signature.encode())
