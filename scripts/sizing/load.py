"""Load for which the sizing model computes service sizes: messages, requests, records and retention times."""

from dataclasses import dataclass, fields
from math import ceil
from typing import Final

MEMORY_SIZES_MB: Final = (512, 2048, 4096)
MAX_VALUE: Final = 1_000_000_000
"""Largest value of a field; far beyond every limit, small enough for all arithmetic."""

_AT_LEAST_ONE = {"deployments", "connections", "connections_per_listener", "audit_scopes", "compression", "regions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load of all deployments together, of which each deployment processes an equal part.

    Attributes:
        deployments: number of deployments; each serves one workspace.
        connections: number of data connections.
        messages_per_second: mean number of telemetry messages per second.
        message_bytes: size of a message as the device sends it.
        busiest_connection_messages_per_second: messages per second of the busiest connection; 0 if all connections send
            the same number.
        batch_seconds: time between two invocations for one partition of a hub while events wait. The default is an
            assumption for ``minEventBatchSize`` 1 in host.json; for 1,000, use the value of ``maxWaitTime``.
        listeners: number of live streams that are open at the same time; 0 for deployments without a live stream
            (``withLiveStream``).
        connections_per_listener: number of connections whose telemetry events each live stream receives.
        http_requests_per_second: number of API requests per second, including queries.
        audit_events_per_second: number of audit records appended per second.
        audit_scopes: number of audit chains; each receives an equal part of the records.
        audit_record_bytes: size of an audit record as canonical JSON.
        audit_days: age in days of the oldest audit records in the computed sizes; the service itself never removes
            audit records.
        hot_days: number of days for which telemetry is in the cache of Data Explorer.
        retention_days: number of days for which telemetry is in Data Explorer.
        archive_days: age in days of the oldest archived telemetry in the computed sizes; the service itself never
            removes it.
        compression: compression ratio of Data Explorer: bytes of JSON for each stored byte.
        log_gb_per_day: GB of logs and traces that Log Analytics ingests per day.
        instance_memory_mb: memory of each instance of the app in MB.
        regions: number of regions of the Cosmos DB account.
        simulators: True if simulated connections send telemetry, so that the background timer runs every second.
        production: True if instances are always ready, Cosmos DB throughput is provisioned, and Data Explorer has at
            least two machines.
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
        """Check that every field is in its range.

        Raises:
            ValueError: a field is out of range; the message names the first such field.
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
    def connections_per_deployment(self) -> int:
        """Number of connections of each deployment."""
        return ceil(self.connections / self.deployments)

    @property
    def messages_per_second_per_deployment(self) -> float:
        """Number of telemetry messages per second of each deployment."""
        return self.messages_per_second / self.deployments

    @property
    def listeners_per_deployment(self) -> int:
        """Number of open live streams of each deployment."""
        return ceil(self.listeners / self.deployments)

    @property
    def requests_per_second_per_deployment(self) -> float:
        """Number of API requests per second of each deployment."""
        return self.http_requests_per_second / self.deployments

    @property
    def scopes_per_deployment(self) -> int:
        """Number of audit chains of each deployment."""
        return ceil(self.audit_scopes / self.deployments)

    @property
    def audit_records_per_second_per_deployment(self) -> float:
        """Number of audit records that each deployment appends per second."""
        return self.audit_events_per_second / self.deployments

    @property
    def peak_connection_messages_per_second(self) -> float:
        """Messages per second of the busiest connection; the mean of all connections if the load does not state it."""
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
