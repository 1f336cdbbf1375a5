"""HTTP operations of the live stream: WebSocket URLs for clients, and the handler of events from Web PubSub."""

import base64
import json
from collections.abc import Mapping
from typing import Any, TypedDict
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.http import versions
from shared.http.messages import Reply, Request, build_json_reply
from shared.http.operation_docs import DocumentedReply, OperationDocs
from shared.http.operations import Access, Call, Group
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import UnknownNames
from shared.live_stream.event_sources import CONNECTION_ID
from shared.live_stream.filters import MEMBER, StreamFilters, read_member_id
from shared.live_stream.service import (
    TOKEN_PARAMETER,
    Listener,
    extract_credential,
    read_authorization_moved_by_gateway,
)
from shared.observability.metrics import count
from shared.timestamps import format_rfc3339
from shared.wiring import services

GROUP = Group("live-stream")
ROUTE = "oi-api/live-stream"
CONNECT, CONNECTED, DISCONNECTED = "connect", "connected", "disconnected"
_VERSION = versions.HEADER.lower()
_TYPE, _STATE = "ce-type", "ce-connectionstate"
_SYSTEM = "azure.webpubsub.sys."
_CREDENTIALS = frozenset({TOKEN_PARAMETER, "access_token"})
"""Names of query parameters that contain a credential of this service or of Web PubSub."""

_ADMISSION = Group("live-stream-admission")


class LinkToStream(TypedDict):
    """A WebSocket URL that opens a live stream until `expiresAt`."""

    url: str
    expiresAt: str


_URL = "wss://plant-a.webpubsub.azure.com/client/hubs/live?access_token=eyJhbGciOiJIUzI1NiJ9.e30.c2ln&surface=cooling"

STREAM_DOCS = OperationDocs(
    (
        DocumentedReply(101, "The connection is a WebSocket. Each impulse is a text message with one JSON object."),
        DocumentedReply(
            307,
            "This host cannot upgrade the connection. Connect to the WebSocket URL in `Location`.",
            headers={"Location": "WebSocket URL of the same stream."},
        ),
    ),
    error_statuses=(404, 426, 503),
)
NEGOTIATED_DOCS = OperationDocs(
    (
        DocumentedReply(
            200, "The WebSocket URL.", LinkToStream, {"url": _URL, "expiresAt": "2026-01-05T09:00:00.000000Z"}
        ),
    ),
    error_statuses=(404, 503),
)
EVENTS_DOCS = OperationDocs(listed=False)


class ConnectEvent(BaseModel):
    """Web PubSub's connect event: a client wants to open a WebSocket.

    The event contains the client's claims, query and headers.
    """

    model_config = ConfigDict(extra="ignore")

    claims: dict[str, list[str]] = {}
    query: dict[str, list[str]] = {}
    headers: dict[str, list[str]] = {}
    subprotocols: list[str] = Field(default_factory=list)


def _read_stream_authorization(request: Request) -> str:
    try:
        tokens = [value for name, value in request.query_pairs if name == TOKEN_PARAMETER]
    except ValueError:
        tokens = []  # the pipeline rejects the invalid query string after it has authenticated the caller
    subprotocols = [each.strip(" \t") for each in request.headers.get("sec-websocket-protocol", "").split(",")]
    return extract_credential(request.headers.get("authorization", ""), tokens, subprotocols).authorization


@GROUP.endpoint(
    "GET",
    ROUTE,
    right=AccessRight.LIVE_STREAM_READ,
    query=StreamFilters,
    extra_parameters=(TOKEN_PARAMETER,),
    credential=_read_stream_authorization,
    docs=STREAM_DOCS,
)
async def live_stream(call: Call[StreamFilters, Any]) -> Reply:
    """Open a WebSocket that receives impulses.

    Impulses are telemetry events. A host that cannot upgrade redirects to a WebSocket URL that needs no further
    credential.
    """
    live = services().live_stream.service
    if _is_websocket_upgrade(call.request):
        link = await live.create_stream_link(call.principal, call.query, _select_stream_parameters(call.request))
        return Reply(307, b"", {"Location": link.url})
    await live.select_connection_lookups(call.query)
    raise WorkspaceError(
        Kind.UPGRADE_REQUIRED, "UPGRADE_REQUIRED", "This route requires a WebSocket; send `Upgrade: websocket`."
    )


@GROUP.endpoint(
    "GET", f"{ROUTE}/negotiate", right=AccessRight.LIVE_STREAM_READ, query=StreamFilters, docs=NEGOTIATED_DOCS
)
async def negotiate_live_stream(call: Call[StreamFilters, Any]) -> Reply:
    """Return a WebSocket URL that needs no further credential.

    Browsers use this operation, and clients of hosts that cannot upgrade a request to a WebSocket.
    """
    link = await services().live_stream.service.create_stream_link(
        call.principal, call.query, _select_stream_parameters(call.request)
    )
    return build_json_reply({"url": link.url, "expiresAt": format_rfc3339(link.expires_at)})


@GROUP.endpoint("OPTIONS", f"{ROUTE}/events", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=EVENTS_DOCS)
async def accept_event_handler_validation(_: Call) -> Reply:
    """Accept Web PubSub's validation request for this event handler."""
    return Reply(200, b"", {"WebHook-Allowed-Origin": services().live_stream.events.get_webhook_allowed_origin()})


async def _verify_event_sender(request: Request) -> None:
    await services().live_stream.events.require_call_from_web_pubsub(request.headers)


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/events",
    access=Access.PUBLIC,
    check_sender=_verify_event_sender,
    body=ConnectEvent,
    unknown=UnknownNames.IGNORE,
    docs=EVENTS_DOCS,
)
async def handle_live_stream_event(call: Call[Any, ConnectEvent]) -> Reply:
    """Handle a Web PubSub event: authorize a connecting client, replay past impulses, or release a closed stream.

    A closed stream no longer counts towards the quota of its principal.
    """
    headers = call.request.headers
    event = headers.get(_TYPE, "").removeprefix(_SYSTEM)
    if event == CONNECT:
        return await _build_admission_pipeline(call.body).serve(_connect_event_to_stream_request(call.body, headers))
    state = _decode_connection_state_or_empty(headers.get(_STATE, ""))
    member_id, stream_id = read_member_id(state), headers.get(CONNECTION_ID, "")
    if event == CONNECTED:
        # Web PubSub does not wait for this reply. The request lasts as long as the replay, because the platform may
        # stop an instance without requests.
        filters = StreamFilters.from_stream_state(state)
        await services().live_stream.catch_up.replay_or_close_stream(stream_id, member_id, filters)
    elif event == DISCONNECTED and member_id:
        await services().live_stream.service.release_stream(member_id, stream_id)
    return Reply(204)


@_ADMISSION.endpoint(
    "GET",
    ROUTE,
    right=AccessRight.LIVE_STREAM_READ,
    query=StreamFilters,
    # The request has no token any more, but the error about an unknown parameter lists it.
    extra_parameters=(TOKEN_PARAMETER,),
)
async def admit_listener(call: Call[StreamFilters, Any]) -> Reply:
    """Reserve a live stream for a client, and return the reply to Web PubSub with the groups that the client joins.

    The pipeline has already checked the client's credential and filters.
    """
    stream_id = call.request.headers.get(CONNECTION_ID, "")
    admission = await services().live_stream.service.admit_listener(call.principal, call.query, stream_id)
    count("workspace.live.admitted")
    subprotocol = call.request.headers.get("sec-websocket-protocol", "")
    reply = {"userId": admission.user, "groups": admission.groups}
    expires_at = format_rfc3339(Listener.from_principal(call.principal).expires_at)
    state = {"expiresAt": expires_at, MEMBER: call.principal.member_id} | call.query.to_stream_state(
        services().runtime.now()
    )
    return build_json_reply(
        reply | ({"subprotocol": subprotocol} if subprotocol else {}),
        headers={"ce-connectionState": base64.b64encode(json.dumps(state).encode()).decode()},
    )


def _is_websocket_upgrade(request: Request) -> bool:
    """Return whether a request upgrades to a WebSocket.

    The Connection header must contain ``Upgrade`` (RFC 9110 section 7.8).
    """
    options = [each.strip().lower() for each in request.headers.get("connection", "").split(",")]
    return "upgrade" in options and request.headers.get("upgrade", "").lower() == "websocket"


def _decode_connection_state_or_empty(base64_state: str) -> bytes:
    try:
        return base64.b64decode(base64_state, validate=True)
    except ValueError:
        return b""


def _build_admission_pipeline(event: ConnectEvent) -> RequestPipeline:
    """Build a pipeline that checks the client's WebSocket request, as if the client had sent it to the API itself.

    The client sent the request to Web PubSub, whose connect event contains its claims, query and headers.
    """
    users = event.claims.get("sub", [])

    async def authenticate_client(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        if users:
            return await services().live_stream.service.authenticate_stream_user(users[0])
        return await services().access.authenticator(authorization, accepted)

    return RequestPipeline(
        _ADMISSION.operations,
        authenticate_client,
        services().features.require_feature,
        services().rate_limits.admit,
        runtime=services().runtime,
    )


def _connect_event_to_stream_request(event: ConnectEvent, event_headers: Mapping[str, str]) -> Request:
    """Rebuild the client's original request from Web PubSub's connect event."""
    client_headers = {name.lower(): ",".join(values) for name, values in event.headers.items()}
    found = extract_credential(
        read_authorization_moved_by_gateway(client_headers), event.query.get(TOKEN_PARAMETER, []), event.subprotocols
    )
    request_headers = {
        "authorization": found.authorization,
        "sec-websocket-protocol": found.subprotocol,
        CONNECTION_ID: event_headers.get(CONNECTION_ID, ""),
    }
    if _VERSION in client_headers:
        request_headers[_VERSION] = client_headers[_VERSION]
    request_id = client_headers.get("x-request-id") or event_headers.get("x-request-id", "")
    query = [(name, value) for name, values in event.query.items() for value in values if name not in _CREDENTIALS]
    return Request("GET", f"/{ROUTE}", urlencode(query), request_headers | {"x-request-id": request_id}, b"")


def _select_stream_parameters(request: Request) -> dict[str, str]:
    """Return the query parameters of a request that filter the live stream, for the stream's WebSocket URL."""
    names = {field.alias or name for name, field in StreamFilters.model_fields.items()}
    return {name: value for name, value in request.query_pairs if name in names}
