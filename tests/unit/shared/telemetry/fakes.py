"""In-memory catalog, hub and state store for telemetry tests."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from shared.catalog.models import Connection, Surface
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.errors import Kind, WorkspaceError
from shared.telemetry.models import HubEvent, HubMessage
from shared.telemetry.ports import ArrivedMessages, ConnectionState, CurrentCatalog
from shared.timestamps import format_rfc3339

MOMENT = datetime(2026, 1, 5, 8, tzinfo=UTC)


def build_connection(lookup: str, **members: Any) -> Connection:
    """Return a connection with the given properties of the workspace document."""
    return Connection.model_validate({"lookup": lookup, "name": lookup, "type": "CLOUD_EVENT_HUB", **members})


def build_catalog(
    *connections: Connection, surfaces: Mapping[str, Sequence[str]] | None = None, version: int = 1
) -> Catalog:
    """Return a catalog that contains these connections, and these surfaces with their connections."""
    return Catalog(
        version=version,
        connections={each.lookup: CatalogEntry(each, MOMENT, MOMENT, "admin") for each in connections},
        surfaces={
            lookup: CatalogEntry(Surface(lookup=lookup, name=lookup, connections=tuple(owned)), MOMENT, MOMENT, "admin")
            for lookup, owned in (surfaces or {}).items()
        },
    )


def build_catalog_getter(stored_catalog: Catalog) -> CurrentCatalog:
    """Return an asynchronous function that returns this catalog."""

    async def get_catalog() -> Catalog:
        return stored_catalog

    return get_catalog


def build_event(body: bytes, sequence_number: int = 1, *, device: str = "", **properties: str) -> HubEvent:
    """Return an event of partition 0; with each sequence number, its enqueued time is one second later."""
    enqueued_at = datetime.fromtimestamp(MOMENT.timestamp() + sequence_number, UTC)
    return HubEvent(body, "0", sequence_number, enqueued_at, properties, device)


class CountingPool(ThreadPoolExecutor):
    """Thread pool that counts the submitted jobs."""

    jobs = 0

    def submit[**P, T](self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Count the job and execute it."""
        self.jobs += 1
        return super().submit(function, *args, **kwargs)


class Hub:
    """Fake hub that stores messages, and rejects them while ``down`` is set."""

    def __init__(self) -> None:
        self.sends: list[tuple[str, list[HubMessage]]] = []
        self.down = False

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Store the messages, or reject them if the hub is down."""
        if self.down:
            raise WorkspaceError(Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE", "down")
        self.sends.append((hub, list(messages)))

    @property
    def messages(self) -> list[HubMessage]:
        """All messages in order."""
        return [message for _, messages in self.sends for message in messages]


class States:
    """Fake store of connection states in memory."""

    def __init__(self) -> None:
        self.progress: dict[tuple[str, str], tuple[int, str]] = {}
        self.counts: dict[str, int] = {}
        self.mismatches: Counter[str] = Counter()
        self.statuses: list[tuple[str, str]] = []
        self.status_reads = self.status_changes = 0

    async def add_arrived_messages_to_counts(self, arrivals: Sequence[ArrivedMessages]) -> None:
        """Count the messages of each connection that are not counted yet."""
        for each in arrivals:
            assert list(each.sequence_numbers) == sorted(set(each.sequence_numbers))
            highest, latest = self.progress.get((each.connection, each.source), (None, ""))
            new = each.list_uncounted_sequence_numbers(highest, latest)
            self.counts[each.connection] = self.counts.get(each.connection, 0) + len(new)
            progress = max(new, default=highest or 0), max(latest, format_rfc3339(each.last_message))
            self.progress[each.connection, each.source] = progress
            self.mismatches[each.connection] += len(each.mismatched.intersection(new))

    async def set_status(self, connections: Collection[str], status: str) -> None:
        """Store the new status of connections."""
        self.status_changes += 1
        self.statuses.extend((connection, status) for connection in connections)

    async def load_statuses_by_connection(self) -> Mapping[str, str]:
        """Return the last status of each connection."""
        self.status_reads += 1
        return dict(self.statuses)

    async def load_states_by_connection(self) -> Mapping[str, ConnectionState]:
        """Return the last status of each connection."""
        return {lookup: ConnectionState(status, self.counts.get(lookup, 0), None) for lookup, status in self.statuses}
