"""Load that a deployment is sized for."""

from dataclasses import dataclass, fields
from math import ceil
from typing import Final

MEMORY_SIZES_MB: Final = (512, 2048, 4096)
MAX_VALUE: Final = 1_000_000_000
"""Largest value of a field; far beyond every limit, small enough for all arithmetic."""

_AT_LEAST_ONE = {"deployments", "connections", "connections_per_listener", "audit_scopes", "compression", "regions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load of all deployments together; it is spread evenly over them.

    Attributes:
        deployments: number of deployments; each serves one workspace.
        connections: data connections.
        messages_per_second: mean telemetry messages.
        message_bytes: size of a message as the device sends it.
        busiest_connection_messages_per_second: messages of the busiest connection; 0 if all are equal.
        batch_seconds: time between two invocations for each partition of a hub, while events wait. The default is an
            assumption for ``minEventBatchSize`` 1; with 1,000 in host.json it is ``maxWaitTime``.
        listeners: live streams that are open at the same time; 0 for deployments without Web PubSub.
        connections_per_listener: connections that a live stream hears.
        http_requests_per_second: requests of the API, queries included.
        audit_events_per_second: appended audit records.
        audit_scopes: chains over which the records spread evenly.
        audit_record_bytes: size of a record's canonical form.
        audit_days: age up to which the stored audit chains are counted; the service never removes them.
        hot_days: days of telemetry in the cache of Data Explorer.
        retention_days: days of telemetry in Data Explorer.
        archive_days: age up to which the archive is counted; the service never removes it.
        compression: bytes of JSON per byte that Data Explorer stores.
        log_gb_per_day: logs and traces that Log Analytics takes in.
        instance_memory_mb: memory of an instance of the app.
        regions: regions of Cosmos DB.
        simulators: whether the simulators run, and the timer ticks every second.
        production: whether instances stand ready, Cosmos DB is provisioned and Data Explorer has two machines or more.
    """

    deployments: int = 1
    connections: int = 5
    messages_per_second: float = 10.0
    message_bytes: int = 150
    busiest_connection_messages_per_second: float = 0.0
    batch_seconds: float = 0.1
    listeners: int = 0
    connections_per_listener: int = 1
    http_requests_per_second: float = 1.0
    audit_events_per_second: float = 0.01
    audit_scopes: int = 1
    audit_record_bytes: int = 1024
    audit_days: int = 3653
    hot_days: int = 31
    retention_days: int = 366
    archive_days: int = 3653
    compression: float = 5.0
    log_gb_per_day: float = 1.0
    instance_memory_mb: int = 2048
    regions: int = 1
    simulators: bool = False
    production: bool = True

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: names the first field that is out of range.
        """
        for field in fields(self):
            least = 1 if field.name in _AT_LEAST_ONE else 0
            if not least <= getattr(self, field.name) <= MAX_VALUE:
                raise ValueError(f"Field `{field.name}` must be between {least} and {MAX_VALUE}.")
        if not self.batch_seconds:
            raise ValueError("Field `batch_seconds` must be more than 0.")
        if self.regions > 1 and not self.production:
            raise ValueError("Field `regions` must be 1 without `production`: a serverless account has one region.")
        if self.instance_memory_mb not in MEMORY_SIZES_MB:
            raise ValueError(f"Field `instance_memory_mb` must be one of {', '.join(map(str, MEMORY_SIZES_MB))}.")

    @property
    def connections_each(self) -> int:
        """Connections of one deployment."""
        return ceil(self.connections / self.deployments)

    @property
    def messages_each(self) -> float:
        """Messages/s of one deployment."""
        return self.messages_per_second / self.deployments

    @property
    def listeners_each(self) -> int:
        """Live streams of one deployment."""
        return ceil(self.listeners / self.deployments)

    @property
    def requests_each(self) -> float:
        """Requests/s of one deployment."""
        return self.http_requests_per_second / self.deployments

    @property
    def scopes_each(self) -> int:
        """Audit chains of one deployment."""
        return ceil(self.audit_scopes / self.deployments)

    @property
    def audit_each(self) -> float:
        """Audit records/s of one deployment."""
        return self.audit_events_per_second / self.deployments

    @property
    def busiest_connection(self) -> float:
        """Messages/s of the busiest connection."""
        return max(self.busiest_connection_messages_per_second, self.messages_per_second / self.connections)


EXAMPLES: Final = {
    "line": Load(
        connections=5,
        messages_per_second=10,
        listeners=5,
        audit_events_per_second=0.01,
        hot_days=7,
        retention_days=31,
        log_gb_per_day=0.2,
        production=False,
    ),
    "plant": Load(
        connections=200,
        messages_per_second=1_000,
        listeners=100,
        http_requests_per_second=20,
        audit_events_per_second=0.5,
        audit_scopes=20,
        log_gb_per_day=5,
        regions=2,
    ),
    "plants": Load(
        deployments=50,
        connections=20_000,
        messages_per_second=1_000_000,
        listeners=5_000,
        http_requests_per_second=1_000,
        audit_events_per_second=25,
        audit_scopes=1_000,
        hot_days=7,
        log_gb_per_day=250,
        regions=2,
    ),
}
"""One line, one plant, and 50 plants with 1 M messages/s."""
