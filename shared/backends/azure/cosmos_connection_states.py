"""Status and message counts of the workspace's data connections in Cosmos DB.

One item contains the message counts of one event hub partition, because only one instance reads a partition at a time.
A batch of messages therefore costs one write for many connections, and instances do not write the same item. If an item
is full, further connections are in another item.
"""

import asyncio
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CONNECTIONS
from shared.backends.azure.cosmos_item_store import CosmosItemStore, Item, NoChange
from shared.background.ports import CLOCK_TOLERANCE, cap_stored_time
from shared.errors import WorkspaceError
from shared.observability.logs import get_logger
from shared.telemetry.ports import ArrivedMessages, ConnectionState
from shared.timestamps import format_rfc3339, parse_rfc3339

MAX_CONNECTIONS: Final = 5_000
"""Maximum number of connections in an item: about 1 MB of the 2 MB that Cosmos DB allows.

Removed connections count, too. A later version must not increase this number, because a full item stays full.
"""
_LOG: Final = get_logger("connections")
_STATUSES: Final = "statuses"
_DEFAULT_STATUS: Final = "CONNECTING"
"""Status of a connection that has message counts, but no stored status."""


class CosmosConnectionStates:
    """Implementation of ConnectionStateStore: stores the status and message statistics of connections in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
    """

    def __init__(self, account: CosmosAccount) -> None:
        self._runtime = account.runtime
        name = "the store of connection states"
        self._items = CosmosItemStore(account, CONNECTIONS, "CONNECTION_STATES_UNAVAILABLE", name)
        self._waiting: dict[str, tuple[list[ArrivedMessages], asyncio.Task[None]]] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known: dict[str, Item] = {}

    async def add_arrived_messages_to_counts(self, arrivals: Sequence[ArrivedMessages]) -> None:
        """Add messages to the counts, except those that are already counted.

        Messages that arrive while the item of their partition is being written are counted by the next write. A failed
        call may have counted some of the messages. A second call with the same messages counts only the remaining ones.
        """
        by_source: defaultdict[str, list[ArrivedMessages]] = defaultdict(list)
        for each in arrivals:
            by_source[each.source].append(each)
        await asyncio.gather(
            *(self._add_to_counts_in_next_write(source, of_source) for source, of_source in by_source.items())
        )

    async def set_status(self, connection_lookups: Collection[str], status: str) -> None:
        remaining = connection_lookups
        for item_id in _iterate_possible_item_ids(_STATUSES):
            remaining = await self._set_status_in_item_and_return_unset_connections(item_id, remaining, status)
            if not remaining:
                return

    async def load_statuses_by_connection(self) -> Mapping[str, str]:
        statuses: dict[str, str] = {}
        for item_id in _iterate_possible_item_ids(_STATUSES):
            item = await self._items.read(item_id, item_id)
            found: dict[str, str] = item["statuses"] if item else {}
            statuses |= found
            if len(found) < MAX_CONNECTIONS:
                break
        return statuses

    async def load_states_by_connection(self) -> Mapping[str, ConnectionState]:
        items, at = await self._items.query_items("SELECT * FROM c"), self._runtime.now()
        # Processing the states of thousands of connections would block the event loop.
        capped = await self._runtime.run_in_thread(_map_items_with_future_times, items, at)
        for item_id in capped:
            await self._try_store_capped_times(item_id, at)
        current = [capped.get(item["id"], item) for item in items]
        return await self._runtime.run_in_thread(_build_connection_states, current)

    async def close(self) -> None:
        """Wait until the running writes of connection states have ended."""
        await asyncio.gather(*self._writes, return_exceptions=True)

    async def _try_store_capped_times(self, item_id: str, at: datetime) -> None:
        """Store the times of the latest messages of an item after a clock setback; the next read repeats a failure."""
        try:
            await self._items.change(item_id, item_id, lambda item: item and _cap_future_times(item, at))
        except WorkspaceError as error:
            _LOG.warning("the times of the latest messages were not corrected after a clock setback: %s", error)

    async def _set_status_in_item_and_return_unset_connections(
        self, item_id: str, connections: Collection[str], status: str
    ) -> Collection[str]:
        """Set the status of the connections that an item contains or has space for; return all other connections."""
        others: set[str] = set()

        def change_statuses(before: Item | None) -> Item | NoChange:
            nonlocal others
            statuses: dict[str, str] = before["statuses"] if before else {}
            others = _find_connections_that_do_not_fit(statuses, connections)
            changed = statuses | dict.fromkeys((each for each in connections if each not in others), status)
            return None if changed == statuses else {"id": item_id, "statuses": changed}

        await self._items.change(item_id, item_id, change_statuses)
        return [each for each in connections if each in others]

    async def _add_to_counts_in_next_write(self, source: str, arrivals: Sequence[ArrivedMessages]) -> None:
        if source not in self._waiting:
            batch: list[ArrivedMessages] = []
            write = asyncio.create_task(self._write_message_counts(source, batch))
            self._waiting[source] = batch, write
            self._writes.add(write)
            write.add_done_callback(self._writes.discard)
        joined, written = self._waiting[source]
        joined.extend(arrivals)
        # A cancelled caller must not cancel the write of the others.
        await asyncio.shield(written)

    async def _write_message_counts(self, source: str, arrivals: Sequence[ArrivedMessages]) -> None:
        name = hashlib.sha256(source.encode()).hexdigest()[:40]
        async with self._locks[source]:
            del self._waiting[source]
            for item_id in _iterate_possible_item_ids(name):
                arrivals = await self._add_counts_to_item_and_return_uncounted_messages(item_id, source, arrivals)
                if not arrivals:
                    return

    async def _add_counts_to_item_and_return_uncounted_messages(
        self, item_id: str, source: str, arrivals: Sequence[ArrivedMessages]
    ) -> Sequence[ArrivedMessages]:
        """Count messages in an item, for the connections that it contains or has space for.

        Return the messages of all other connections, which are not counted.
        """
        others: set[str] = set()

        def add_counts(before: Item | None) -> Item | NoChange:
            nonlocal others
            counts: dict[str, dict[str, Any]] = dict(before["counts"]) if before else {}
            others = _find_connections_that_do_not_fit(counts, [each.connection for each in arrivals])
            at = self._runtime.now()
            changes = [
                _add_new_messages_and_test_for_change(counts, each, at)
                for each in arrivals
                if each.connection not in others
            ]
            return {"id": item_id, "source": source, "counts": counts} if any(changes) else None

        item = await self._items.change(item_id, item_id, add_counts, known_item=self._known.pop(item_id, None))
        if item is not None:
            self._known[item_id] = item
        return [each for each in arrivals if each.connection in others]


def _iterate_possible_item_ids(first_item_id: str) -> Iterator[str]:
    """Yield ``first_item_id``, then the same id with ``-1``, ``-2`` and so on, without end.

    If the item with one id is full, the item with the next id contains the further connections.
    """
    yield first_item_id
    for number in itertools.count(1):
        yield f"{first_item_id}-{number}"


def _find_connections_that_do_not_fit(
    stored_by_connection: Mapping[str, object], connections: Iterable[str]
) -> set[str]:
    """Return the connections that an item neither contains nor has space for.

    A full item gets no more connections, and no connection is ever removed. So each connection stays in one item.

    Args:
        stored_by_connection: what the item stores for each of its connections, such as the status.
        connections: connections for which something must be stored.
    """
    new = [each for each in dict.fromkeys(connections) if each not in stored_by_connection]
    return set(new[max(0, MAX_CONNECTIONS - len(stored_by_connection)) :])


def _add_new_messages_and_test_for_change(
    counts: dict[str, dict[str, Any]], arrivals: ArrivedMessages, at: datetime
) -> bool:
    """Add the messages that are not counted yet to the counts of their connection, and update its last message's time.

    Return whether the counts or the time have changed.

    Args:
        counts: counts and last message's time of each connection, for one hub partition.
        arrivals: messages of one connection from this partition.
        at: the current time.
    """
    before = counts.get(arrivals.connection, {"received": 0, "highest": None, "last": ""})
    new = arrivals.list_uncounted_sequence_numbers(before["highest"], before["last"])
    last = max(before["last"], format_rfc3339(arrivals.last_message))
    highest = max(new, default=before["highest"])
    count = {"received": before["received"] + len(new), "highest": highest, "last": last}
    # Items of earlier versions, and of connections without signals, have no such property.
    if mismatches := before.get("mismatches", 0) + len(arrivals.mismatched.intersection(new)):
        count["mismatches"] = mismatches
    # The highest time decides whether the hub was reset, so only the reported time is corrected after a clock setback.
    reported = before.get("reported", before["last"])
    if new or last > before["last"]:
        reported = max(_cap_stored_time_text(reported, at), format_rfc3339(arrivals.last_message))
    if reported != last:
        count["reported"] = reported
    counts[arrivals.connection] = count
    return count != before


def _cap_stored_time_text(stored_time: str, at: datetime) -> str:
    """Return a stored time, or the current time ``at`` if the stored time is in the future; see ``cap_stored_time``."""
    return format_rfc3339(cap_stored_time(parse_rfc3339(stored_time), at)) if stored_time else ""


def _map_items_with_future_times(items: Iterable[Item], at: datetime) -> dict[str, Item]:
    """Return the items that :func:`_cap_future_times` changes, as it returns them, by their ids."""
    return {item["id"]: capped for item in items if (capped := _cap_future_times(item, at)) is not None}


def _cap_future_times(item: Item, at: datetime) -> Item | NoChange:
    """Return an item in which the current time ``at`` replaces future times of latest messages; None if it has none."""
    latest, capped_time = format_rfc3339(at + CLOCK_TOLERANCE), format_rfc3339(at)
    counts: dict[str, dict[str, Any]] = item.get("counts", {})
    capped = {
        connection: {**count, "reported": capped_time}
        for connection, count in counts.items()
        if count.get("reported", count["last"]) > latest
    }
    return {**item, "counts": counts | capped} if capped else None


def _build_connection_states(items: Iterable[Item]) -> Mapping[str, ConnectionState]:
    statuses: dict[str, str] = {}
    counts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in items:
        statuses.update(item.get("statuses", {}))
        for connection, count in item.get("counts", {}).items():
            counts[connection].append(count)
    return {
        connection: _build_connection_state(statuses.get(connection, _DEFAULT_STATUS), counts[connection])
        for connection in sorted(statuses.keys() | counts.keys())
    }


def _build_connection_state(status: str, counts: Sequence[Mapping[str, Any]]) -> ConnectionState:
    """Build the state of a connection from its counts of all hub partitions.

    Args:
        status: stored status of the connection.
        counts: counts and last message's time, for each partition that had messages of the connection.
    """
    last = max((count.get("reported", count["last"]) for count in counts), default="")
    received = sum(int(count["received"]) for count in counts)
    mismatches = sum(int(count.get("mismatches", 0)) for count in counts)
    return ConnectionState(status, received, parse_rfc3339(last) if last else None, mismatches)
