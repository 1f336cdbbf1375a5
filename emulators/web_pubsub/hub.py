"""A hub: its connections by id, by group and by user, and sending to them."""

import asyncio
from collections.abc import Collection, Iterable

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.payloads import DataType, Payload
from shared.observability.metrics import change

_NOBODY: frozenset[str] = frozenset()


class Hub:
    """The clients of one hub. Groups exist while somebody is in them."""

    def __init__(self) -> None:
        self.connections: dict[str, ClientConnection] = {}
        self._groups: dict[str, dict[str, ClientConnection]] = {}
        self._users: dict[str, dict[str, ClientConnection]] = {}

    def add(self, connection: ClientConnection, groups: Iterable[str] = ()) -> None:
        """Take a client in, and into groups."""
        self.connections[connection.id] = connection
        change("workspace.live.clients", 1)
        if connection.user_id is not None:
            self._users.setdefault(connection.user_id, {})[connection.id] = connection
        for group in groups:
            self.join(connection, group)

    def remove(self, connection: ClientConnection) -> None:
        """Forget a client; doing it twice does nothing."""
        self.leave_all(connection)
        if self.connections.pop(connection.id, None) is not None:
            change("workspace.live.clients", -1)
        if connection.user_id is not None:
            _take_out(self._users, connection.user_id, connection)
        connection.dispose()

    def join(self, connection: ClientConnection, group: str) -> None:
        """Put a client into a group."""
        if connection.id in self.connections:
            self._groups.setdefault(group, {})[connection.id] = connection
            connection.groups.add(group)

    def leave(self, connection: ClientConnection, group: str) -> None:
        """Take a client out of a group."""
        _take_out(self._groups, group, connection)
        connection.groups.discard(group)

    def leave_all(self, connection: ClientConnection) -> None:
        """Take a client out of every group."""
        for group in tuple(connection.groups):
            self.leave(connection, group)

    def group_connections(self, group: str) -> Collection[ClientConnection]:
        """Return who is in a group."""
        return self._groups.get(group, {}).values()

    def user_connections(self, user_id: str) -> Collection[ClientConnection]:
        """Return the clients of a user."""
        return self._users.get(user_id, {}).values()

    async def publish(self, group: str, data: bytes, data_type: DataType = DataType.JSON) -> None:
        """Send a message to a group, without waiting for any client.

        Args:
            group: its name.
            data: one JSON value, or what the data type says.
            data_type: what the data are.
        """
        await self.deliver(Payload(data, data_type, group=group), self.group_connections(group))

    async def deliver(
        self, payload: Payload, connections: Iterable[ClientConnection], excluded: Collection[str] = _NOBODY
    ) -> None:
        """Send a message to clients, except those whose ids are excluded.

        It returns after one turn of the event loop, in which the sockets take what they can: a publisher that never
        gave way would see every client as fallen behind.
        """
        for connection in connections:
            if connection.id not in excluded:
                connection.send(payload)
        await asyncio.sleep(0)


def _take_out(index: dict[str, dict[str, ClientConnection]], key: str, connection: ClientConnection) -> None:
    members = index.get(key)
    if members is not None:
        members.pop(connection.id, None)
        if not members:
            del index[key]
