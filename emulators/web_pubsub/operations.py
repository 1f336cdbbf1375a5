"""The operations of the data plane, by method and path below ``/api/hubs/{hub}``."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta

from emulators.web_pubsub.access_tokens import issue_token
from emulators.web_pubsub.calls import DataPlaneRequest
from emulators.web_pubsub.connection import ClientConnection
from shared.errors import Kind, WorkspaceError, invalid
from shared.http.messages import Reply, json_bytes
from shared.timestamps import now

type Operation = Callable[[DataPlaneRequest], Awaitable[Reply]]

_OK, _ACCEPTED, _NO_CONTENT, _NOT_FOUND = (Reply(status, b"", {}) for status in (200, 202, 204, 404))
_MAX_MINUTES = 7 * 24 * 60
_PAGE, _MAX_TOP = 200, 2**31 - 1


async def send_to_all(request: DataPlaneRequest) -> Reply:
    """Send to every client of the hub."""
    await request.hub.deliver(request.parse_payload(), tuple(request.hub.connections.values()), request.excluded_ids())
    return _ACCEPTED


async def send_to_group(request: DataPlaneRequest) -> Reply:
    """Send to everybody in a group."""
    await request.hub.deliver(
        request.parse_payload(), tuple(request.hub.group_connections(request.parse_group())), request.excluded_ids()
    )
    return _ACCEPTED


async def send_to_user(request: DataPlaneRequest) -> Reply:
    """Send to every client of a user."""
    await request.hub.deliver(request.parse_payload(), tuple(request.hub.user_connections(request.path["user"])))
    return _ACCEPTED


async def send_to_connection(request: DataPlaneRequest) -> Reply:
    """Send to one client, once it took everything before it: who sends much to one client goes at its pace."""
    payload = request.parse_payload()
    if not await _connection(request).send_when_drained(payload):
        raise _unknown_connection()
    return _ACCEPTED


async def close_all(request: DataPlaneRequest) -> Reply:
    """Close every client of the hub."""
    return _close(request, request.hub.connections.values())


async def close_group(request: DataPlaneRequest) -> Reply:
    """Close everybody in a group."""
    return _close(request, request.hub.group_connections(request.parse_group()))


async def close_user(request: DataPlaneRequest) -> Reply:
    """Close every client of a user."""
    return _close(request, request.hub.user_connections(request.path["user"]))


async def close_connection(request: DataPlaneRequest) -> Reply:
    """Close one client, if it is there."""
    connection = request.hub.connections.get(request.path["connection"])
    return _close(request, () if connection is None else (connection,))


async def connection_exists(request: DataPlaneRequest) -> Reply:
    """Say whether a client is connected."""
    return _OK if request.path["connection"] in request.hub.connections else _NOT_FOUND


async def group_exists(request: DataPlaneRequest) -> Reply:
    """Say whether anybody is in a group."""
    return _OK if request.hub.group_connections(request.parse_group()) else _NOT_FOUND


async def user_exists(request: DataPlaneRequest) -> Reply:
    """Say whether a user has a client."""
    return _OK if request.hub.user_connections(request.path["user"]) else _NOT_FOUND


async def join_connection(request: DataPlaneRequest) -> Reply:
    """Put one client into a group."""
    request.hub.join(_connection(request), request.parse_group())
    return _OK


async def leave_connection(request: DataPlaneRequest) -> Reply:
    """Take one client out of a group."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        request.hub.leave(connection, request.parse_group())
    return _NO_CONTENT


async def leave_connection_all(request: DataPlaneRequest) -> Reply:
    """Take one client out of every group."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        request.hub.leave_all(connection)
    return _NO_CONTENT


async def join_user(request: DataPlaneRequest) -> Reply:
    """Put the clients that a user has now into a group."""
    for connection in request.hub.user_connections(request.path["user"]):
        request.hub.join(connection, request.parse_group())
    return _OK


async def leave_user(request: DataPlaneRequest) -> Reply:
    """Take the clients of a user out of a group."""
    for connection in request.hub.user_connections(request.path["user"]):
        request.hub.leave(connection, request.parse_group())
    return _NO_CONTENT


async def leave_user_all(request: DataPlaneRequest) -> Reply:
    """Take the clients of a user out of every group."""
    for connection in request.hub.user_connections(request.path["user"]):
        request.hub.leave_all(connection)
    return _NO_CONTENT


async def list_group(request: DataPlaneRequest) -> Reply:
    """List who is in a group, in pages; a page goes on after the id of the one before's last connection."""
    top, size = request.parse_number("top", _MAX_TOP, 1, _MAX_TOP), request.parse_number("maxpagesize", _PAGE, 1, _PAGE)
    after = request.query_value("continuationToken") or ""
    left = sorted(
        (each for each in request.hub.group_connections(request.parse_group()) if each.id > after),
        key=lambda each: each.id,
    )
    page = left[: min(top, size)]
    document: dict[str, object] = {"value": [_member(each) for each in page]}
    if len(page) < min(len(left), top):
        rest = f"api-version={request.query_value('api-version')}&maxpagesize={size}&continuationToken={page[-1].id}"
        if top != _MAX_TOP:
            rest += f"&top={top - len(page)}"
        document["nextLink"] = f"{request.origin}{request.path['']}?{rest}"
    return Reply(200, json_bytes(document), {"Content-Type": "application/json"})


async def grant_permission(request: DataPlaneRequest) -> Reply:
    """Give a client a permission."""
    _connection(request).permissions.grant(*request.parse_permission())
    return _OK


async def check_permission(request: DataPlaneRequest) -> Reply:
    """Say whether a client has a permission."""
    connection = request.hub.connections.get(request.path["connection"])
    return _OK if connection is not None and connection.permissions.allows(*request.parse_permission()) else _NOT_FOUND


async def revoke_permission(request: DataPlaneRequest) -> Reply:
    """Take a permission from a client."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        connection.permissions.revoke(*request.parse_permission())
    return _NO_CONTENT


async def generate_token(request: DataPlaneRequest) -> Reply:
    """Make an access token for a client."""
    if (request.query_value("clientType") or "Default").lower() != "default":
        raise invalid("clientType", "must be Default; other protocols are not supported by this stand-in")
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
    return Reply(200, json_bytes({"token": token}), {"Content-Type": "application/json"})


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


def _close(request: DataPlaneRequest, connections: Iterable[ClientConnection]) -> Reply:
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
