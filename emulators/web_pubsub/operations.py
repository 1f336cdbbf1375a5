"""The operations of the data plane, by method and path below ``/api/hubs/{hub}``."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta

from emulators.web_pubsub.access_tokens import issue_token
from emulators.web_pubsub.calls import Call
from emulators.web_pubsub.connection import Connection
from shared.errors import Kind, WorkspaceError, invalid
from shared.http.messages import Reply, json_bytes
from shared.timestamps import now

type Operation = Callable[[Call], Awaitable[Reply]]

_OK, _ACCEPTED, _NO_CONTENT, _NOT_FOUND = (Reply(status, b"", {}) for status in (200, 202, 204, 404))
_MOST_MINUTES = 7 * 24 * 60
_PAGE, _MOST_TOP = 200, 2**31 - 1


async def send_to_all(call: Call) -> Reply:
    """Send to every client of the hub."""
    await call.hub.deliver(call.payload(), tuple(call.hub.connections.values()), call.excluded())
    return _ACCEPTED


async def send_to_group(call: Call) -> Reply:
    """Send to everybody in a group."""
    await call.hub.deliver(call.payload(), tuple(call.hub.in_group(call.group())), call.excluded())
    return _ACCEPTED


async def send_to_user(call: Call) -> Reply:
    """Send to every client of a user."""
    await call.hub.deliver(call.payload(), tuple(call.hub.of_user(call.path["user"])))
    return _ACCEPTED


async def send_to_connection(call: Call) -> Reply:
    """Send to one client, once it took everything before it: who sends much to one client goes at its pace."""
    payload = call.payload()
    if not await _connection(call).send_paced(payload):
        raise _unknown_connection()
    return _ACCEPTED


async def close_all(call: Call) -> Reply:
    """Close every client of the hub."""
    return _close(call, call.hub.connections.values())


async def close_group(call: Call) -> Reply:
    """Close everybody in a group."""
    return _close(call, call.hub.in_group(call.group()))


async def close_user(call: Call) -> Reply:
    """Close every client of a user."""
    return _close(call, call.hub.of_user(call.path["user"]))


async def close_connection(call: Call) -> Reply:
    """Close one client, if it is there."""
    connection = call.hub.connections.get(call.path["connection"])
    return _close(call, () if connection is None else (connection,))


async def connection_exists(call: Call) -> Reply:
    """Say whether a client is connected."""
    return _OK if call.path["connection"] in call.hub.connections else _NOT_FOUND


async def group_exists(call: Call) -> Reply:
    """Say whether anybody is in a group."""
    return _OK if call.hub.in_group(call.group()) else _NOT_FOUND


async def user_exists(call: Call) -> Reply:
    """Say whether a user has a client."""
    return _OK if call.hub.of_user(call.path["user"]) else _NOT_FOUND


async def join_connection(call: Call) -> Reply:
    """Put one client into a group."""
    call.hub.join(_connection(call), call.group())
    return _OK


async def leave_connection(call: Call) -> Reply:
    """Take one client out of a group."""
    connection = call.hub.connections.get(call.path["connection"])
    if connection is not None:
        call.hub.leave(connection, call.group())
    return _NO_CONTENT


async def leave_connection_all(call: Call) -> Reply:
    """Take one client out of every group."""
    connection = call.hub.connections.get(call.path["connection"])
    if connection is not None:
        call.hub.leave_all(connection)
    return _NO_CONTENT


async def join_user(call: Call) -> Reply:
    """Put the clients that a user has now into a group."""
    for connection in call.hub.of_user(call.path["user"]):
        call.hub.join(connection, call.group())
    return _OK


async def leave_user(call: Call) -> Reply:
    """Take the clients of a user out of a group."""
    for connection in call.hub.of_user(call.path["user"]):
        call.hub.leave(connection, call.group())
    return _NO_CONTENT


async def leave_user_all(call: Call) -> Reply:
    """Take the clients of a user out of every group."""
    for connection in call.hub.of_user(call.path["user"]):
        call.hub.leave_all(connection)
    return _NO_CONTENT


async def list_group(call: Call) -> Reply:
    """List who is in a group, in pages; a page goes on after the id of the one before's last connection."""
    top, size = call.number("top", _MOST_TOP, 1, _MOST_TOP), call.number("maxpagesize", _PAGE, 1, _PAGE)
    after = call.one("continuationToken") or ""
    left = sorted((each for each in call.hub.in_group(call.group()) if each.id > after), key=lambda each: each.id)
    page = left[: min(top, size)]
    document: dict[str, object] = {"value": [_member(each) for each in page]}
    if len(page) < min(len(left), top):
        rest = f"api-version={call.one('api-version')}&maxpagesize={size}&continuationToken={page[-1].id}"
        if top != _MOST_TOP:
            rest += f"&top={top - len(page)}"
        document["nextLink"] = f"{call.origin}{call.path['']}?{rest}"
    return Reply(200, json_bytes(document), {"Content-Type": "application/json"})


async def grant_permission(call: Call) -> Reply:
    """Give a client a permission."""
    _connection(call).permissions.grant(*call.permission())
    return _OK


async def check_permission(call: Call) -> Reply:
    """Say whether a client has a permission."""
    connection = call.hub.connections.get(call.path["connection"])
    return _OK if connection is not None and connection.permissions.holds(*call.permission()) else _NOT_FOUND


async def revoke_permission(call: Call) -> Reply:
    """Take a permission from a client."""
    connection = call.hub.connections.get(call.path["connection"])
    if connection is not None:
        connection.permissions.revoke(*call.permission())
    return _NO_CONTENT


async def generate_token(call: Call) -> Reply:
    """Make an access token for a client."""
    if (call.one("clientType") or "Default").lower() != "default":
        raise invalid("clientType", "must be Default; other protocols are not supported by this stand-in")
    minutes = timedelta(minutes=call.number("minutesToExpire", 60, 1, _MOST_MINUTES))
    issued = now()
    token = issue_token(
        call.access_key,
        f"{call.origin}/client/hubs/{call.hub_name}",
        int(issued.timestamp()),
        int((issued + minutes).timestamp()),
        {
            "sub": call.one("userId"),
            "role": call.query.get("role"),
            "webpubsub.group": call.query.get("group"),
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


def _close(call: Call, connections: Iterable[Connection]) -> Reply:
    reason, excluded = call.reason(), call.excluded()
    for connection in tuple(connections):
        if connection.id not in excluded:
            connection.close(reason=reason)
    return _NO_CONTENT


def _connection(call: Call) -> Connection:
    connection = call.hub.connections.get(call.path["connection"])
    if connection is None:
        raise _unknown_connection()
    return connection


def _unknown_connection() -> WorkspaceError:
    return WorkspaceError(Kind.NOT_FOUND, "CLIENT_NOT_FOUND", "No client with this connection id is connected.")


def _member(connection: Connection) -> dict[str, str]:
    member = {"connectionId": connection.id}
    return member if connection.user_id is None else member | {"userId": connection.user_id}
