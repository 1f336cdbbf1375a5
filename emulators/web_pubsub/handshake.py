"""Access tokens of clients and servers, and the check whether a client may connect."""

import base64
import binascii
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

import jwt
import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from emulators.web_pubsub.asgi import (
    Message,
    find_bearer_token,
    read_headers,
    read_host_and_port,
    read_query_parameters,
)
from emulators.web_pubsub.connection import JSON_SUBPROTOCOL
from emulators.web_pubsub.events import EventSubject, HubEvents
from emulators.web_pubsub.upstream import HandlerResponse
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.observability.logs import get_logger
from shared.timestamps import parse_rfc3339

type Claims = Mapping[str, Any]

_CACHE_SIZE = 1_000
_MAX_TOKEN_LENGTH = 16_384
_MAX_TIME = 253_402_300_800
_INVALID = "The access token is malformed, expired, or not signed with the access key."
_SCHEMES = frozenset({"http", "https", "ws", "wss"})
RELIABLE_SUBPROTOCOL = "json.reliable.webpubsub.azure.v1"
_LOGGER = get_logger("emulators.web_pubsub")


def validate_access_token(token: str, access_key: str, host_and_port: str, path_and_query: str) -> Claims:
    """Validate an access token for the requested URL and return the claims of the token.

    Args:
        token: access token in the request, a JWT.
        access_key: key that must have signed the token.
        host_and_port: host and port of the requested URL, in lower case.
        path_and_query: path of the requested URL as sent, optionally with the query.

    Raises:
        WorkspaceError: UNAUTHENTICATED if the token is malformed, expired, signed with another key, or issued for
            another URL.
    """
    claims = _verify_token(token, access_key, host_and_port, path_and_query)
    if claims["exp"] <= time.time():
        raise _build_unauthenticated_error(_INVALID)
    return claims


# Publishers reuse a token for many requests, and its validation costs more than a request.
@lru_cache(maxsize=_CACHE_SIZE)
def _verify_token(token: str, access_key: str, host_and_port: str, path_and_query: str) -> Claims:
    try:
        claims: Claims = jwt.decode(
            token, access_key, algorithms=["HS256"], options={"require": ["exp", "aud"], "verify_aud": False}
        )
    except (jwt.InvalidTokenError, ValueError, OverflowError):
        raise _build_unauthenticated_error(_INVALID) from None
    if len(token) > _MAX_TOKEN_LENGTH or not _is_valid_timestamp(claims["exp"]):
        raise _build_unauthenticated_error(_INVALID)
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if not any(
        isinstance(audience, str) and _is_audience_for(audience, host_and_port, path_and_query)
        for audience in audiences
    ):
        raise _build_unauthenticated_error("Claim `aud` of the access token is not the URL of this request.")
    return claims


def issue_token(
    access_key: str,
    audience_url: str,
    issued_unix_seconds: int,
    expires_unix_seconds: int,
    claims: Mapping[str, str | Sequence[str] | None],
) -> str:
    """Issue an access token (JWT), which is signed with the access key.

    Args:
        access_key: key that signs the token.
        audience_url: URL for which the token is valid.
        issued_unix_seconds: time of issue in seconds since 1970.
        expires_unix_seconds: expiry in seconds since 1970.
        claims: further claims by name; empty claims are omitted.
    """
    given = {name: value for name, value in claims.items() if value}
    return jwt.encode(
        {"aud": audience_url, "iat": issued_unix_seconds, "exp": expires_unix_seconds, **given},
        access_key,
        algorithm="HS256",
    )


def _is_audience_for(audience_url: str, host_and_port: str, path_and_query: str) -> bool:
    """Return whether the audience of an access token is the requested URL, apart from percent-encoding.

    Percent-encoding may differ (RFC 3986 section 6.2.2), because a client signs a URL before its HTTP library
    normalises it.
    """
    try:
        parts = urlsplit(audience_url)
    except ValueError:
        return False
    path, _, query = path_and_query.partition("?")
    return (
        parts.scheme in _SCHEMES
        and parts.netloc.lower() == host_and_port
        and _decode_path_segments(parts.path) == _decode_path_segments(path)
        and (not parts.query or _parse_query_parameters(parts.query) == _parse_query_parameters(query))
    )


def _is_valid_timestamp(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MAX_TIME


def _decode_path_segments(path: str) -> list[bytes]:
    return [unquote_to_bytes(segment) for segment in path.split("/")]


def _parse_query_parameters(query: str) -> list[tuple[str, str]]:
    # Invalid UTF-8 must be preserved, because two different URLs could otherwise become equal.
    return parse_qsl(query, keep_blank_values=True, errors="surrogateescape")


def _build_unauthenticated_error(detail: str) -> WorkspaceError:
    return WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", detail)


class HandlerRejectionError(Exception):
    """The event handler rejects a client; ``response`` is the HTTP response to send to the client."""

    def __init__(self, response: HandlerResponse) -> None:
        super().__init__(f"the event handler rejected the client with status {response.status}")
        self.response = response


@dataclass(slots=True)
class AcceptedClient:
    """Client that may connect, with data from its access token and from the event handler.

    Attributes:
        user_id: id of the client's user; None for an anonymous client.
        groups: names of the groups that the client joins.
        roles: roles of the client, which grant permissions.
        subprotocol: accepted WebSocket subprotocol; None for a client without subprotocol.
        state: opaque text that the event handler stored for this connection; None if it has stored none.
        expires_at: time at which to close the connection; None if the connection has no expiry.
        headers: headers of the event handler's response, with names in lower case.
    """

    user_id: str | None = None
    groups: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    subprotocol: str | None = None
    state: str | None = None
    expires_at: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class _ConnectResponse(BaseModel):
    """Body of the event handler's response to ``connect``."""

    model_config = ConfigDict(strict=True)

    userId: str | None = None  # noqa: N815  name on the wire
    groups: list[str] | None = None
    roles: list[str] | None = None
    subprotocol: str | None = None


async def authorize_client(
    scope: Message, hub_name: str, connection_id: str, access_key: str, events: HubEvents, *, allow_anonymous: bool
) -> AcceptedClient:
    """Check the access token of a client and ask the event handler whether the client may connect.

    Args:
        scope: ASGI scope of the handshake.
        hub_name: name of the hub to which the client connects.
        connection_id: id of the new connection.
        access_key: key that signs access tokens.
        events: sender of the hub's events.
        allow_anonymous: True if a client may connect without an access token.

    Raises:
        WorkspaceError: UNAUTHENTICATED without a valid token, INVALID_REQUEST for an unsupported subprotocol,
            EVENT_HANDLER_UNAVAILABLE if the event handler does not respond.
        HandlerRejectionError: the event handler rejects the client.
    """
    headers = read_headers(scope)
    host_and_port = read_host_and_port(scope, headers)
    claims = _find_validated_claims(scope, headers, access_key, host_and_port, allow_anonymous=allow_anonymous)
    admission = _accepted_client_from_claims(claims)
    offered: Sequence[str] = scope["subprotocols"]
    if offered and set(offered) <= {RELIABLE_SUBPROTOCOL}:
        raise build_invalid_field_error("Sec-WebSocket-Protocol", f"{RELIABLE_SUBPROTOCOL} is not supported")
    if events.has_connect_handler():
        subject = EventSubject(hub_name, connection_id, admission.user_id, None, None, host_and_port)
        response = await events.send_connect_event(subject, _build_connect_document(scope, headers, claims))
        _apply_connect_response(admission, response, offered)
    if admission.subprotocol is None and JSON_SUBPROTOCOL in offered:
        admission.subprotocol = JSON_SUBPROTOCOL
    return admission


def _find_validated_claims(
    scope: Message, headers: dict[str, list[str]], access_key: str, host_and_port: str, *, allow_anonymous: bool
) -> Claims | None:
    token = read_query_parameters(scope).get("access_token", [None])[0] or find_bearer_token(headers)
    if token is not None:
        return validate_access_token(token, access_key, host_and_port, scope["raw_path"].decode("latin-1"))
    if not allow_anonymous:
        raise WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", "An access token is required.")
    return None


def _accepted_client_from_claims(claims: Claims | None) -> AcceptedClient:
    if claims is None:
        return AcceptedClient()
    instants = [datetime.fromtimestamp(claims["exp"], UTC)]
    if isinstance(claims.get("expires_at"), str):
        instants.append(_parse_instant(claims["expires_at"]))
    return AcceptedClient(
        user_id=claims.get("sub"),
        groups=_list_strings_in_claim(claims.get("webpubsub.group")),
        roles=_list_strings_in_claim(claims.get("role")),
        expires_at=min(instants),
    )


def _parse_instant(text: str) -> datetime:
    try:
        return parse_rfc3339(text)
    except ValueError:
        raise WorkspaceError(
            Kind.UNAUTHENTICATED,
            "UNAUTHENTICATED",
            "Claim `expires_at` of the token is not an RFC 3339 date-time.",
        ) from None


def _list_strings_in_claim(claim: object) -> list[str]:
    """Return the strings in a claim that is a string or a list; an empty list for any other claim."""
    values = claim if isinstance(claim, list) else [claim]
    return [value for value in values if isinstance(value, str)]


def _build_connect_document(scope: Message, headers: dict[str, list[str]], claims: Claims | None) -> dict[str, object]:
    query = {name: values for name, values in read_query_parameters(scope).items() if name != "access_token"}
    return {
        "claims": {name: _list_claim_values_as_texts(value) for name, value in (claims or {}).items()},
        "query": query,
        "headers": headers,
        "subprotocols": list(scope["subprotocols"]),
        "clientCertificates": [],
    }


def _list_claim_values_as_texts(value: Any) -> list[str]:
    return [each if isinstance(each, str) else orjson.dumps(each).decode() for each in _ensure_list(value)]


def _ensure_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _apply_connect_response(
    admission: AcceptedClient, response: HandlerResponse, offered_subprotocols: Sequence[str]
) -> None:
    if not 200 <= response.status < 300:  # noqa: PLR2004  any 2xx
        raise HandlerRejectionError(response)
    admission.headers = response.headers
    admission.state = response.headers.get("ce-connectionstate")
    expiry = find_state_expiry(admission.state)
    if expiry is not None:
        admission.expires_at = expiry  # the expiry of a shared link, which only the event handler knows
    if not response.body:
        return
    try:
        given = _ConnectResponse.model_validate_json(response.body)
    except ValidationError as error:
        _LOGGER.error("the event handler's response to connect is malformed: %s", error)  # noqa: TRY400  a stack trace adds nothing
        raise WorkspaceError(
            Kind.UNAVAILABLE, "EVENT_HANDLER_UNAVAILABLE", "The event handler's response is malformed."
        ) from None
    admission.user_id = given.userId or admission.user_id
    admission.groups += given.groups or []
    admission.roles += given.roles or []
    if given.subprotocol in offered_subprotocols:
        admission.subprotocol = given.subprotocol


def find_state_expiry(connection_state: str | None) -> datetime | None:
    """Return the time ``expiresAt`` in a connection state that is a JSON object in Base64; None for any other state.

    In the Azure service the state is opaque; only this emulator closes the connection at this time.
    """
    if connection_state is None:
        return None
    try:
        document: Mapping[str, object] = orjson.loads(base64.b64decode(connection_state, validate=True))
        return parse_rfc3339(str(document["expiresAt"]))
    except (binascii.Error, ValueError, KeyError, TypeError):
        return None
