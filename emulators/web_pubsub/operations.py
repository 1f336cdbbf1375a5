"""Operations of the data plane, by method and path below ``/api/hubs/{hub}``.

``OPERATIONS`` lists what the emulator supports; authentication and routing belong to the service.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.data_plane_requests import DataPlaneRequest
from emulators.web_pubsub.error_replies import EmulatorReply, json_reply
from emulators.web_pubsub.handshake import issue_token
from shared.errors import Kind, WorkspaceError, invalid
from shared.timestamps import now

type Operation = Callable[[DataPlaneRequest], Awaitable[EmulatorReply]]

_OK, _ACCEPTED, _NO_CONTENT, _NOT_FOUND = (EmulatorReply(status, b"", {}) for status in (200, 202, 204, 404))
_MAX_MINUTES = 7 * 24 * 60
_PAGE, _MAX_TOP = 200, 2**31 - 1


async def send_to_all(request: DataPlaneRequest) -> EmulatorReply:
    """Send to every client of the hub."""
    await request.hub.deliver(request.parse_payload(), tuple(request.hub.connections.values()), request.excluded_ids())
    return _ACCEPTED


async def send_to_group(request: DataPlaneRequest) -> EmulatorReply:
    """Send to every client in a group."""
    await request.hub.deliver(
        request.parse_payload(), tuple(request.hub.group_connections(request.parse_group())), request.excluded_ids()
    )
    return _ACCEPTED


async def send_to_user(request: DataPlaneRequest) -> EmulatorReply:
    """Send to every client of a user."""
    await request.hub.deliver(request.parse_payload(), tuple(request.hub.user_connections(request.path["user"])))
    return _ACCEPTED


async def send_to_connection(request: DataPlaneRequest) -> EmulatorReply:
    """Send to one client after it has received all earlier messages, which limits the rate of the sender."""
    payload = request.parse_payload()
    if not await _connection(request).send_when_drained(payload):
        raise _unknown_connection()
    return _ACCEPTED


async def close_all(request: DataPlaneRequest) -> EmulatorReply:
    """Close every client of the hub."""
    return _close(request, request.hub.connections.values())


async def close_group(request: DataPlaneRequest) -> EmulatorReply:
    """Close every client in a group."""
    return _close(request, request.hub.group_connections(request.parse_group()))


async def close_user(request: DataPlaneRequest) -> EmulatorReply:
    """Close every client of a user."""
    return _close(request, request.hub.user_connections(request.path["user"]))


async def close_connection(request: DataPlaneRequest) -> EmulatorReply:
    """Close one client, if it is connected."""
    connection = request.hub.connections.get(request.path["connection"])
    return _close(request, () if connection is None else (connection,))


async def connection_exists(request: DataPlaneRequest) -> EmulatorReply:
    """Return 200 if a client is connected, else 404."""
    return _OK if request.path["connection"] in request.hub.connections else _NOT_FOUND


async def group_exists(request: DataPlaneRequest) -> EmulatorReply:
    """Return 200 if a group has clients, else 404."""
    return _OK if request.hub.group_connections(request.parse_group()) else _NOT_FOUND


async def user_exists(request: DataPlaneRequest) -> EmulatorReply:
    """Return 200 if a user has clients, else 404."""
    return _OK if request.hub.user_connections(request.path["user"]) else _NOT_FOUND


async def join_connection(request: DataPlaneRequest) -> EmulatorReply:
    """Add one client to a group."""
    request.hub.join(_connection(request), request.parse_group())
    return _OK


async def leave_connection(request: DataPlaneRequest) -> EmulatorReply:
    """Remove one client from a group."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        request.hub.leave(connection, request.parse_group())
    return _NO_CONTENT


async def leave_connection_all(request: DataPlaneRequest) -> EmulatorReply:
    """Remove one client from all groups."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        request.hub.leave_all(connection)
    return _NO_CONTENT


async def join_user(request: DataPlaneRequest) -> EmulatorReply:
    """Add the current clients of a user to a group."""
    for connection in request.hub.user_connections(request.path["user"]):
        request.hub.join(connection, request.parse_group())
    return _OK


async def leave_user(request: DataPlaneRequest) -> EmulatorReply:
    """Remove the clients of a user from a group."""
    for connection in request.hub.user_connections(request.path["user"]):
        request.hub.leave(connection, request.parse_group())
    return _NO_CONTENT


async def leave_user_all(request: DataPlaneRequest) -> EmulatorReply:
    """Remove the clients of a user from all groups."""
    for connection in request.hub.user_connections(request.path["user"]):
        request.hub.leave_all(connection)
    return _NO_CONTENT


async def list_group(request: DataPlaneRequest) -> EmulatorReply:
    """List the clients in a group by page; the continuation token is the last connection id of a page."""
    top, size = request.parse_number("top", _MAX_TOP, 1, _MAX_TOP), request.parse_number("maxpagesize", _PAGE, 1, _PAGE)
    after = request.query_value("continuationToken") or ""
    members = sorted(
        (each for each in request.hub.group_connections(request.parse_group()) if each.id > after),
        key=lambda each: each.id,
    )
    page = members[: min(top, size)]
    document: dict[str, object] = {"value": [_member(each) for each in page]}
    if len(page) < min(len(members), top):
        rest = f"api-version={request.query_value('api-version')}&maxpagesize={size}&continuationToken={page[-1].id}"
        if top != _MAX_TOP:
            rest += f"&top={top - len(page)}"
        document["nextLink"] = f"{request.origin}{request.path['']}?{rest}"
    return json_reply(document)


async def grant_permission(request: DataPlaneRequest) -> EmulatorReply:
    """Grant a permission to a client."""
    _connection(request).permissions.grant(*request.parse_permission())
    return _OK


async def check_permission(request: DataPlaneRequest) -> EmulatorReply:
    """Return 200 if a client has a permission, else 404."""
    connection = request.hub.connections.get(request.path["connection"])
    return _OK if connection is not None and connection.permissions.allows(*request.parse_permission()) else _NOT_FOUND


async def revoke_permission(request: DataPlaneRequest) -> EmulatorReply:
    """Revoke a permission of a client."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        connection.permissions.revoke(*request.parse_permission())
    return _NO_CONTENT


async def generate_token(request: DataPlaneRequest) -> EmulatorReply:
    """Issue an access token for a client."""
    if (request.query_value("clientType") or "Default").lower() != "default":
        raise invalid("clientType", "must be Default; this emulator supports no other protocol")
    minutes = timedelta(minutes=request.parse_number("minutesToExpire", 60, 1, _MAX_MINUTES))
    issued = now()
    token = issue_token(
        request.access_key,
        f"{request.origin}/client/hubs/{request.hub_name}",
        int(issued.timestamp()),
        int((issued + minutes).timestamp()),
        {
            "sub": request.query_value("userId"),
            "role": request.query.get("role"),
            "webpubsub.group": request.query.get("group"),
        },
    )
    return json_reply({"token": token})


OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    ":send": {"POST": send_to_all},
    ":closeConnections": {"POST": close_all},
    ":generateToken": {"POST": generate_token},
    "connections/{connection}": {"HEAD": connection_exists, "DELETE": close_connection},
    "connections/{connection}/:send": {"POST": send_to_connection},
    "connections/{connection}/groups": {"DELETE": leave_connection_all},
    "groups/{group}": {"HEAD": group_exists},
    "groups/{group}/:send": {"POST": send_to_group},
    "groups/{group}/:closeConnections": {"POST": close_group},
    "groups/{group}/connections": {"GET": list_group},
    "groups/{group}/connections/{connection}": {"PUT": join_connection, "DELETE": leave_connection},
    "permissions/{permission}/connections/{connection}": {
        "PUT": grant_permission,
        "HEAD": check_permission,
        "DELETE": revoke_permission,
    },
    "users/{user}": {"HEAD": user_exists},
    "users/{user}/:send": {"POST": send_to_user},
    "users/{user}/:closeConnections": {"POST": close_user},
    "users/{user}/groups": {"DELETE": leave_user_all},
    "users/{user}/groups/{group}": {"PUT": join_user, "DELETE": leave_user},
}


def _close(request: DataPlaneRequest, connections: Iterable[ClientConnection]) -> EmulatorReply:
    reason, excluded = request.close_reason(), request.excluded_ids()
    for connection in tuple(connections):
        if connection.id not in excluded:
            connection.close(reason=reason)
    return _NO_CONTENT


def _connection(request: DataPlaneRequest) -> ClientConnection:
    connection = request.hub.connections.get(request.path["connection"])
    if connection is None:
        raise _unknown_connection()
    return connection


def _unknown_connection() -> WorkspaceError:
    return WorkspaceError(Kind.NOT_FOUND, "CLIENT_NOT_FOUND", "No client with this connection id is connected.")


def _member(connection: ClientConnection) -> dict[str, str]:
    member = {"connectionId": connection.id}
    return member if connection.user_id is None else member | {"userId": connection.user_id}
