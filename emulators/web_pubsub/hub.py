"""Hub: connections by id, group and user."""

import asyncio
from collections.abc import Callable, Collection, Iterable

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.payloads import DataType, Payload

_NONE_EXCLUDED: frozenset[str] = frozenset()


class Hub:
    """Clients of one hub. A group exists while it has members."""

    def __init__(self, count_clients: Callable[[int], None] = lambda _change: None) -> None:
        """Create an empty hub; ``count_clients`` receives each change of the number of clients."""
        self._count_clients = count_clients
        self.connections: dict[str, ClientConnection] = {}
        self._groups: dict[str, dict[str, ClientConnection]] = {}
        self._users: dict[str, dict[str, ClientConnection]] = {}

    def add(self, connection: ClientConnection, groups: Iterable[str] = ()) -> None:
        """Add a client to the hub and to groups."""
        self.connections[connection.id] = connection
        self._count_clients(1)
        if connection.user_id is not None:
            self._users.setdefault(connection.user_id, {})[connection.id] = connection
        for group in groups:
            self.join(connection, group)

    def remove(self, connection: ClientConnection) -> None:
        """Remove a client, if it is present."""
        self.leave_all(connection)
        if self.connections.pop(connection.id, None) is not None:
            self._count_clients(-1)
        if connection.user_id is not None:
            _remove_from(self._users, connection.user_id, connection)
        connection.dispose()

    def join(self, connection: ClientConnection, group: str) -> None:
        """Add a client to a group."""
        if connection.id in self.connections:
            self._groups.setdefault(group, {})[connection.id] = connection
            connection.groups.add(group)

    def leave(self, connection: ClientConnection, group: str) -> None:
        """Remove a client from a group."""
        _remove_from(self._groups, group, connection)
        connection.groups.discard(group)

    def leave_all(self, connection: ClientConnection) -> None:
        """Remove a client from all groups."""
        for group in tuple(connection.groups):
            self.leave(connection, group)

    def group_connections(self, group: str) -> Collection[ClientConnection]:
        """Return the clients in a group."""
        return self._groups.get(group, {}).values()

    def user_connections(self, user_id: str) -> Collection[ClientConnection]:
        """Return the clients of a user."""
        return self._users.get(user_id, {}).values()

    async def publish(self, group: str, data: bytes, data_type: DataType = DataType.JSON) -> None:
        """Send a message to a group, without waiting for any client.

        Args:
            group: its name.
            data: one JSON value, or data of ``data_type``.
            data_type: type of the data.
        """
        await self.deliver(Payload(data, data_type, group=group), self.group_connections(group))

    async def deliver(
        self, payload: Payload, connections: Iterable[ClientConnection], excluded: Collection[str] = _NONE_EXCLUDED
    ) -> None:
        """Send a message to clients, except those whose ids are excluded.

        It yields to the event loop once, so that sockets can write. Without this, a busy publisher would make every
        client look too slow.
        """
        for connection in connections:
            if connection.id not in excluded:
                connection.send(payload)
        await asyncio.sleep(0)


def _remove_from(index: dict[str, dict[str, ClientConnection]], key: str, connection: ClientConnection) -> None:
    members = index.get(key)
    if members is not None:
        members.pop(connection.id, None)
        if not members:
            del index[key]
