"""A hub: its connections by id, by group and by user, and sending to them."""

import asyncio
from collections.abc import Collection, Iterable

from emulators.web_pubsub.connection import Connection
from emulators.web_pubsub.payloads import DataType, Payload
from shared.observability.metrics import change

_NOBODY: frozenset[str] = frozenset()


class Hub:
    """The clients of one hub. Groups exist while somebody is in them."""

    def __init__(self) -> None:
        self.connections: dict[str, Connection] = {}
        self._groups: dict[str, dict[str, Connection]] = {}
        self._users: dict[str, dict[str, Connection]] = {}

    def add(self, connection: Connection, groups: Iterable[str] = ()) -> None:
        """Take a client in, and into groups."""
        self.connections[connection.id] = connection
        change("workspace.live.clients", 1)
        if connection.user_id is not None:
            self._users.setdefault(connection.user_id, {})[connection.id] = connection
        for group in groups:
            self.join(connection, group)

    def remove(self, connection: Connection) -> None:
        """Forget a client; doing it twice does nothing."""
        self.leave_all(connection)
        if self.connections.pop(connection.id, None) is not None:
            change("workspace.live.clients", -1)
        if connection.user_id is not None:
            _take_out(self._users, connection.user_id, connection)
        connection.gone()

    def join(self, connection: Connection, group: str) -> None:
        """Put a client into a group."""
        if connection.id in self.connections:
            self._groups.setdefault(group, {})[connection.id] = connection
            connection.groups.add(group)

    def leave(self, connection: Connection, group: str) -> None:
        """Take a client out of a group."""
        _take_out(self._groups, group, connection)
        connection.groups.discard(group)

    def leave_all(self, connection: Connection) -> None:
        """Take a client out of every group."""
        for group in tuple(connection.groups):
            self.leave(connection, group)

    def in_group(self, group: str) -> Collection[Connection]:
        """Return who is in a group."""
        return self._groups.get(group, {}).values()

    def of_user(self, user_id: str) -> Collection[Connection]:
        """Return the clients of a user."""
        return self._users.get(user_id, {}).values()

    async def publish(self, group: str, data: bytes, data_type: DataType = DataType.JSON) -> None:
        """Send a message to a group, without waiting for any client.

        Args:
            group: its name.
            data: one JSON value, or what the data type says.
            data_type: what the data are.
        """
        await self.deliver(Payload(data, data_type, group=group), self.in_group(group))

    async def deliver(
        self, payload: Payload, connections: Iterable[Connection], excluded: Collection[str] = _NOBODY
    ) -> None:
        """Send a message to clients, except those whose ids are excluded.

        It returns after one turn of the event loop, in which the sockets take what they can: a publisher that never
        gave way would see every client as fallen behind.
        """
        for connection in connections:
            if connection.id not in excluded:
                connection.send(payload)
        await asyncio.sleep(0)


def _take_out(index: dict[str, dict[str, Connection]], key: str, connection: Connection) -> None:
    members = index.get(key)
    if members is not None:
        members.pop(connection.id, None)
        if not members:
            del index[key]
