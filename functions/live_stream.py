"""The live stream's HTTP side: links, the answer to those who do not upgrade, and the message service's questions."""

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from functions.replies import live_stream as replies
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Reply, Request, json_reply
from shared.http.operations import Access, Call, Group
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import UnknownNames
from shared.live_stream.credentials import TOKEN_PARAMETER, Listener, find_credential, read_moved_authorization
from shared.live_stream.event_sources import CONNECTION_ID
from shared.live_stream.filters import MEMBER, StreamFilters, read_member_id
from shared.observability.metrics import count
from shared.timestamps import now, rfc3339
from shared.wiring import services

GROUP = Group("live-stream")
ROUTE = "oi-api/live-stream"
CONNECT, CONNECTED, DISCONNECTED = "connect", "connected", "disconnected"
_TYPE, _STATE = "ce-type", "ce-connectionstate"
_SYSTEM = "azure.webpubsub.sys."
_CREDENTIALS = frozenset({TOKEN_PARAMETER, "access_token"})
"""Query parameters that hold a credential: the service's own, and the message service's."""

_ADMISSION = Group("live-stream-admission")


class ConnectEvent(BaseModel):
    """What the message service tells of somebody who wants to listen."""

    model_config = ConfigDict(extra="ignore")

    claims: dict[str, list[str]] = {}
    query: dict[str, list[str]] = {}
    headers: dict[str, list[str]] = {}
    subprotocols: list[str] = Field(default_factory=list)


def _offered_token(request: Request) -> str:
    try:
        tokens = [value for name, value in request.query_pairs() if name == TOKEN_PARAMETER]
    except ValueError:
        tokens = []  # the query is refused once it is known who asks
    subprotocols = [each.strip(" \t") for each in request.headers.get("sec-websocket-protocol", "").split(",")]
    return find_credential(request.headers.get("authorization", ""), tokens, subprotocols).authorization


@GROUP.endpoint(
    "GET",
    ROUTE,
    right=AccessRight.LIVE_STREAM_READ,
    query=StreamFilters,
    further=(TOKEN_PARAMETER,),
    credential=_offered_token,
    docs=replies.STREAM,
)
async def live_stream(call: Call[StreamFilters, Any]) -> Reply:
    """Listen to impulses as they come, over a WebSocket."""
    live = services().live_stream
    if _upgrades(call.request):
        link = await live.link(call.principal, call.query, _parameters(call.request))
        return Reply(307, b"", {"Location": link.url})
    await live.connections(call.query)
    raise WorkspaceError(
        Kind.UPGRADE_REQUIRED, "UPGRADE_REQUIRED", "This address speaks WebSocket; send Upgrade: websocket."
    )


@GROUP.endpoint(
    "GET", f"{ROUTE}/negotiate", right=AccessRight.LIVE_STREAM_READ, query=StreamFilters, docs=replies.NEGOTIATED
)
async def negotiate_live_stream(call: Call[StreamFilters, Any]) -> Reply:
    """Give a WebSocket URL that needs no further credential, for browsers and for hosts that cannot upgrade."""
    link = await services().live_stream.link(call.principal, call.query, _parameters(call.request))
    return json_reply({"url": link.url, "expiresAt": rfc3339(link.expires_at)})


@GROUP.endpoint("OPTIONS", f"{ROUTE}/events", access=Access.PUBLIC, unknown=UnknownNames.IGNORE, docs=replies.EVENTS)
async def probe_live_stream_events(_: Call) -> Reply:
    """Tell the message service that its events are wanted here."""
    return Reply(200, b"", {"WebHook-Allowed-Origin": services().live_events.origin()})


async def _from_the_service(request: Request) -> None:
    await services().live_events.verify(request.headers)


@GROUP.endpoint(
    "POST",
    f"{ROUTE}/events",
    access=Access.PUBLIC,
    sender=_from_the_service,
    body=ConnectEvent,
    unknown=UnknownNames.IGNORE,
    docs=replies.EVENTS,
)
async def take_live_stream_event(call: Call[Any, ConnectEvent]) -> Reply:
    """Decide, for the message service, who may listen to what; replay what was asked for to those who got in.

    The event of a stream's end frees the place that the stream took in its principal's quota.
    """
    headers = call.request.headers
    event = headers.get(_TYPE, "").removeprefix(_SYSTEM)
    if event == CONNECT:
        return await _admission_pipeline(call.body).serve(_as_request(call.body, headers))
    if event == CONNECTED:
        # The service waits for nothing here; the request lasts as long as the replay, so that its instance stays.
        filters = StreamFilters.from_state(_decoded(headers.get(_STATE, "")))
        await services().live_catch_up.run(headers.get(CONNECTION_ID, ""), filters)
    elif event == DISCONNECTED:
        member_id = read_member_id(_decoded(headers.get(_STATE, "")))
        if member_id:
            await services().live_stream.end(member_id, headers.get(CONNECTION_ID, ""))
    return Reply(204)


@_ADMISSION.endpoint("GET", ROUTE, right=AccessRight.LIVE_STREAM_READ, query=StreamFilters)
async def admit_listener(call: Call[StreamFilters, Any]) -> Reply:
    """Let a listener in."""
    stream_id = call.request.headers.get(CONNECTION_ID, "")
    admission = await services().live_stream.admit(call.principal, call.query, stream_id)
    count("workspace.live.admitted")
    subprotocol = call.request.headers.get("sec-websocket-protocol", "")
    answer = {"userId": admission.user, "groups": admission.groups}
    expires_at = rfc3339(Listener.from_principal(call.principal).expires_at)
    state = {"expiresAt": expires_at, MEMBER: call.principal.member_id} | call.query.to_state(now())
    return json_reply(
        answer | ({"subprotocol": subprotocol} if subprotocol else {}),
        headers={"ce-connectionState": base64.b64encode(json.dumps(state).encode()).decode()},
    )


def _upgrades(request: Request) -> bool:
    """Return whether a request asks for a WebSocket; Upgrade counts only where Connection names it (RFC 9110 7.8)."""
    options = [each.strip().lower() for each in request.headers.get("connection", "").split(",")]
    return "upgrade" in options and request.headers.get("upgrade", "").lower() == "websocket"


def _decoded(state: str) -> bytes:
    try:
        return base64.b64decode(state, validate=True)
    except ValueError:
        return b""


def _admission_pipeline(event: ConnectEvent) -> RequestPipeline:
    """Return a door for the listener's own request, so that all checks come in the order that every route has."""
    users = event.claims.get("sub", [])

    async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        if users:
            return await services().live_stream.resume(users[0])
        return await services().authenticator(authorization, accepted)

    return RequestPipeline(_ADMISSION.operations, authenticate, services().require_feature, services().limits)


def _as_request(event: ConnectEvent, headers: Mapping[str, str]) -> Request:
    """Return the listener's request as it stood before the message service took it."""
    told = {name.lower(): ",".join(values) for name, values in event.headers.items()}
    found = find_credential(read_moved_authorization(told), event.query.get(TOKEN_PARAMETER, []), event.subprotocols)
    own = {
        "authorization": found.authorization,
        "sec-websocket-protocol": found.subprotocol,
        CONNECTION_ID: headers.get(CONNECTION_ID, ""),
    }
    request_id = told.get("x-request-id") or headers.get("x-request-id", "")
    query = [(name, value) for name, values in event.query.items() for value in values if name not in _CREDENTIALS]
    return Request("GET", f"/{ROUTE}", urlencode(query), own | {"x-request-id": request_id}, b"")


def _parameters(request: Request) -> dict[str, str]:
    """Return the parameters of a stream that a link to it repeats."""
    names = {field.alias or name for name, field in StreamFilters.model_fields.items()}
    return {name: value for name, value in request.query_pairs() if name in names}
