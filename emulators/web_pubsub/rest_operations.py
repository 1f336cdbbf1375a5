"""Operations of the emulator's REST API (data plane), which servers call.

``OPERATIONS`` lists them by method and path below ``/api/hubs/{hub}``. They are separate from the ASGI application,
which reads and authorizes requests.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.error_replies import EmulatorReply, build_json_reply
from emulators.web_pubsub.handshake import issue_token
from emulators.web_pubsub.requests import DataPlaneRequest
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.timestamps import now

type Operation = Callable[[DataPlaneRequest], Awaitable[EmulatorReply]]


class MatchedOperation(NamedTuple):
    """REST operation for a request, and the decoded path parameters by name."""

    operation: Operation
    path_parameters: Mapping[str, str]


_CACHE_SIZE = 1_000
_OK, _ACCEPTED, _NO_CONTENT, _NOT_FOUND = (EmulatorReply(status, b"", {}) for status in (200, 202, 204, 404))
_MAX_MINUTES = 7 * 24 * 60
_PAGE, _MAX_TOP = 200, 2**31 - 1


async def send_to_all(request: DataPlaneRequest) -> EmulatorReply:
    """Send a message to every client of the hub."""
    await request.hub.deliver(
        request.parse_payload(), tuple(request.hub.connections.values()), request.read_excluded_connection_ids()
    )
    return _ACCEPTED


async def send_to_group(request: DataPlaneRequest) -> EmulatorReply:
    """Send a message to every client in a group."""
    await request.hub.deliver(
        request.parse_payload(),
        tuple(request.hub.get_group_connections(request.read_group_name())),
        request.read_excluded_connection_ids(),
    )
    return _ACCEPTED


async def send_to_user(request: DataPlaneRequest) -> EmulatorReply:
    """Send a message to every client of a user."""
    await request.hub.deliver(request.parse_payload(), tuple(request.hub.get_user_connections(request.path["user"])))
    return _ACCEPTED


async def send_to_connection(request: DataPlaneRequest) -> EmulatorReply:
    """Send a message to one client after all earlier messages are written; the sender waits for a slow client."""
    payload = request.parse_payload()
    if not await _require_connection(request).try_send_when_drained(payload):
        raise _build_unknown_connection_error()
    return _ACCEPTED


async def close_all_connections(request: DataPlaneRequest) -> EmulatorReply:
    """Close the connection of every client of the hub."""
    return _close_connections(request, request.hub.connections.values())


async def close_group_connections(request: DataPlaneRequest) -> EmulatorReply:
    """Close the connection of every client in a group."""
    return _close_connections(request, request.hub.get_group_connections(request.read_group_name()))


async def close_user_connections(request: DataPlaneRequest) -> EmulatorReply:
    """Close the connection of every client of a user."""
    return _close_connections(request, request.hub.get_user_connections(request.path["user"]))


async def close_connection(request: DataPlaneRequest) -> EmulatorReply:
    """Close the connection of one client, if it is connected."""
    connection = request.hub.connections.get(request.path["connection"])
    return _close_connections(request, () if connection is None else (connection,))


async def check_client_is_connected(request: DataPlaneRequest) -> EmulatorReply:
    """Reply with status 200 if a client is connected, else 404."""
    return _OK if request.path["connection"] in request.hub.connections else _NOT_FOUND


async def check_group_has_clients(request: DataPlaneRequest) -> EmulatorReply:
    """Reply with status 200 if a group has clients, else 404."""
    return _OK if request.hub.get_group_connections(request.read_group_name()) else _NOT_FOUND


async def check_user_has_clients(request: DataPlaneRequest) -> EmulatorReply:
    """Reply with status 200 if a user has clients, else 404."""
    return _OK if request.hub.get_user_connections(request.path["user"]) else _NOT_FOUND


async def add_connection_to_group(request: DataPlaneRequest) -> EmulatorReply:
    """Add one client to a group."""
    request.hub.join_group(_require_connection(request), request.read_group_name())
    return _OK


async def remove_connection_from_group(request: DataPlaneRequest) -> EmulatorReply:
    """Remove one client from a group."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        request.hub.leave_group(connection, request.read_group_name())
    return _NO_CONTENT


async def remove_connection_from_all_groups(request: DataPlaneRequest) -> EmulatorReply:
    """Remove one client from all groups."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        request.hub.leave_all_groups(connection)
    return _NO_CONTENT


async def add_user_to_group(request: DataPlaneRequest) -> EmulatorReply:
    """Add the current clients of a user to a group."""
    for connection in request.hub.get_user_connections(request.path["user"]):
        request.hub.join_group(connection, request.read_group_name())
    return _OK


async def remove_user_from_group(request: DataPlaneRequest) -> EmulatorReply:
    """Remove the clients of a user from a group."""
    for connection in request.hub.get_user_connections(request.path["user"]):
        request.hub.leave_group(connection, request.read_group_name())
    return _NO_CONTENT


async def remove_user_from_all_groups(request: DataPlaneRequest) -> EmulatorReply:
    """Remove the clients of a user from all groups."""
    for connection in request.hub.get_user_connections(request.path["user"]):
        request.hub.leave_all_groups(connection)
    return _NO_CONTENT


async def list_group_connections(request: DataPlaneRequest) -> EmulatorReply:
    """Reply with one page of the connections in a group.

    The continuation token is the last connection id of the previous page.
    """
    top, size = (
        request.parse_integer_parameter("top", _MAX_TOP, 1, _MAX_TOP),
        request.parse_integer_parameter("maxpagesize", _PAGE, 1, _PAGE),
    )
    after = request.find_query_value("continuationToken") or ""
    members = sorted(
        (each for each in request.hub.get_group_connections(request.read_group_name()) if each.id > after),
        key=lambda each: each.id,
    )
    page = members[: min(top, size)]
    document: dict[str, object] = {"value": [_to_connection_entry(each) for each in page]}
    if len(page) < min(len(members), top):
        rest = (
            f"api-version={request.find_query_value('api-version')}&maxpagesize={size}&continuationToken={page[-1].id}"
        )
        if top != _MAX_TOP:
            rest += f"&top={top - len(page)}"
        document["nextLink"] = f"{request.origin}{request.path['']}?{rest}"
    return build_json_reply(document)


async def grant_permission(request: DataPlaneRequest) -> EmulatorReply:
    """Grant a permission to a client."""
    _require_connection(request).permissions.grant(*request.parse_permission_and_group())
    return _OK


async def check_permission(request: DataPlaneRequest) -> EmulatorReply:
    """Reply with status 200 if a client has a permission, else 404."""
    connection = request.hub.connections.get(request.path["connection"])
    return (
        _OK
        if connection is not None and connection.permissions.is_granted(*request.parse_permission_and_group())
        else _NOT_FOUND
    )


async def revoke_permission(request: DataPlaneRequest) -> EmulatorReply:
    """Revoke a permission of a client."""
    connection = request.hub.connections.get(request.path["connection"])
    if connection is not None:
        connection.permissions.revoke(*request.parse_permission_and_group())
    return _NO_CONTENT


async def generate_token(request: DataPlaneRequest) -> EmulatorReply:
    """Issue an access token for a client."""
    if (request.find_query_value("clientType") or "Default").lower() != "default":
        raise build_invalid_field_error("clientType", "must be Default; this emulator supports no other protocol")
    minutes = timedelta(minutes=request.parse_integer_parameter("minutesToExpire", 60, 1, _MAX_MINUTES))
    issued = now()
    token = issue_token(
        request.access_key,
        f"{request.origin}/client/hubs/{request.hub_name}",
        int(issued.timestamp()),
        int((issued + minutes).timestamp()),
        {
            "sub": request.find_query_value("userId"),
            "role": request.query.get("role"),
            "webpubsub.group": request.query.get("group"),
        },
    )
    return build_json_reply({"token": token})


OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    ":send": {"POST": send_to_all},
    ":closeConnections": {"POST": close_all_connections},
    ":generateToken": {"POST": generate_token},
    "connections/{connection}": {"HEAD": check_client_is_connected, "DELETE": close_connection},
    "connections/{connection}/:send": {"POST": send_to_connection},
    "connections/{connection}/groups": {"DELETE": remove_connection_from_all_groups},
    "groups/{group}": {"HEAD": check_group_has_clients},
    "groups/{group}/:send": {"POST": send_to_group},
    "groups/{group}/:closeConnections": {"POST": close_group_connections},
    "groups/{group}/connections": {"GET": list_group_connections},
    "groups/{group}/connections/{connection}": {"PUT": add_connection_to_group, "DELETE": remove_connection_from_group},
    "permissions/{permission}/connections/{connection}": {
        "PUT": grant_permission,
        "HEAD": check_permission,
        "DELETE": revoke_permission,
    },
    "users/{user}": {"HEAD": check_user_has_clients},
    "users/{user}/:send": {"POST": send_to_user},
    "users/{user}/:closeConnections": {"POST": close_user_connections},
    "users/{user}/groups": {"DELETE": remove_user_from_all_groups},
    "users/{user}/groups/{group}": {"PUT": add_user_to_group, "DELETE": remove_user_from_group},
}


def _close_connections(request: DataPlaneRequest, connections: Iterable[ClientConnection]) -> EmulatorReply:
    reason, excluded = request.read_close_reason(), request.read_excluded_connection_ids()
    for connection in tuple(connections):
        if connection.id not in excluded:
            connection.close(request.hub.close_code, reason)
    return _NO_CONTENT


def _require_connection(request: DataPlaneRequest) -> ClientConnection:
    connection = request.hub.connections.get(request.path["connection"])
    if connection is None:
        raise _build_unknown_connection_error()
    return connection


def _build_unknown_connection_error() -> WorkspaceError:
    return WorkspaceError(Kind.NOT_FOUND, "CLIENT_NOT_FOUND", "No client with this connection id is connected.")


def _to_connection_entry(connection: ClientConnection) -> dict[str, str]:
    member = {"connectionId": connection.id}
    return member if connection.user_id is None else member | {"userId": connection.user_id}


@lru_cache(maxsize=_CACHE_SIZE)
def match_operation(method: str, path_below_hub: str) -> MatchedOperation:
    """Return the REST operation for an HTTP method and a path below the hub's path.

    Raises:
        WorkspaceError: ROUTE_NOT_FOUND if no operation has this path; METHOD_NOT_ALLOWED if operations have this path,
            but none has this method.
    """
    segments = path_below_hub.split("/")
    for template, operations in OPERATIONS.items():
        path_parameters = _find_path_parameters(template.split("/"), segments)
        if path_parameters is None:
            continue
        if method not in operations:
            raise WorkspaceError(
                Kind.METHOD_NOT_ALLOWED,
                "METHOD_NOT_ALLOWED",
                f"Method {method} is not allowed for this route; use {', '.join(operations)}.",
                allow=list(operations),
            )
        return MatchedOperation(operations[method], path_parameters)
    raise build_route_not_found_error()


def _find_path_parameters(template_segments: Sequence[str], path_segments: Sequence[str]) -> dict[str, str] | None:
    if len(template_segments) != len(path_segments):
        return None
    parts: dict[str, str] = {}
    for expected, segment in zip(template_segments, path_segments, strict=True):
        if expected.startswith("{") and segment:
            parts[expected.strip("{}")] = unquote(segment)
        elif expected != unquote(segment):
            return None
    return parts


def build_route_not_found_error() -> WorkspaceError:
    """Build the error of a request or handshake with an unknown path."""
    return WorkspaceError(Kind.NOT_FOUND, "ROUTE_NOT_FOUND", "Route not found.")
