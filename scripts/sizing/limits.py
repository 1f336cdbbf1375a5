"""Limits of Azure services and of this service that a load can exceed, each with a remedy."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from scripts.sizing import facts
from scripts.sizing.load import Load
from scripts.sizing.services import (
    ArchiveSize,
    CosmosDbSize,
    DataExplorerSize,
    EventHubsSize,
    LiveStreamSize,
    ScalingGroup,
    compute_impulse_bytes,
    compute_partition_reader_messages_per_second,
)


@dataclass(frozen=True, slots=True)
class ExceededLimit:
    """Limit of an Azure service or of this service that a load exceeds.

    Attributes:
        name: stable identifier of the limit, such as ``event-hubs-units``.
        problem: sentence with the required number and the limit.
        remedy: advice for the operator.
    """

    name: str
    problem: str
    remedy: str


def iterate_exceeded_hub_limits(hubs: EventHubsSize) -> Iterator[ExceededLimit]:
    """Yield the limits of the Event Hubs namespace that the load exceeds."""
    if hubs.throughput_units > facts.MAX_THROUGHPUT_UNITS:
        yield ExceededLimit(
            "event-hubs-units",
            f"A deployment needs {hubs.throughput_units:,} throughput units for "
            f"{ceil(hubs.events_in_per_second):,} events/s in; a Standard namespace has {facts.MAX_THROUGHPUT_UNITS}.",
            "Send several readings in one message, divide the plant into more deployments, or create a Premium "
            "namespace or a Dedicated cluster yourself: the templates make a Standard namespace.",
        )
    if hubs.processing_units > facts.PROCESSING_UNITS[-1]:
        yield ExceededLimit(
            "event-hubs-premium",
            f"A deployment needs {hubs.processing_units:,} processing units; a Premium namespace has "
            f"{facts.PROCESSING_UNITS[-1]}.",
            "Use a Dedicated cluster, or divide the load over more deployments.",
        )
    most = facts.MAX_PARTITIONS_PREMIUM if hubs.processing_units else facts.MAX_PARTITIONS_STANDARD
    if hubs.partitions > most:
        yield ExceededLimit(
            "event-hubs-partitions",
            f"Each hub needs {hubs.partitions:,} partitions; this tier has {most} a hub.",
            "Give large connections hubs of their own (`ownHubs`), divide the load over more deployments, or use a "
            "Dedicated cluster. The number of partitions of a Standard hub cannot be changed later.",
        )


def iterate_exceeded_connection_limits(load: Load) -> Iterator[ExceededLimit]:
    """Yield the limits on one connection, and on the number of connections, that the load exceeds."""
    by_bytes = facts.PARTITION_MB_IN * facts.BYTES_PER_MB / compute_impulse_bytes(load)
    most = min(by_bytes, compute_partition_reader_messages_per_second(1, 1))
    if load.peak_connection_messages_per_second > most:
        yield ExceededLimit(
            "connection-partition",
            f"A connection sends {load.peak_connection_messages_per_second:,.0f} messages/s; "
            "all of them go to one partition, "
            f"which takes {most:,.0f}.",
            "Divide the source into several connections, or send several readings in one message.",
        )
    if load.listeners and load.peak_connection_messages_per_second > facts.CONNECTION_IMPULSES_PER_SECOND:
        yield ExceededLimit(
            "connection-live",
            f"A connection sends {load.peak_connection_messages_per_second:,.0f} messages/s; its live stream publishes "
            "200 to 500.",
            "Listeners miss impulses that are over a minute old. Send fewer, larger messages, or divide the source "
            "into several connections. Ingestion, archive and queries are not affected.",
        )
    if load.connections_per_deployment > facts.MAX_CATALOG_ITEMS:
        yield ExceededLimit(
            "catalog",
            f"A workspace has {load.connections_per_deployment:,} connections; its catalog holds about "
            f"{facts.MAX_CATALOG_ITEMS:,} items.",
            "Divide the plant into several workspaces, each with a deployment of its own.",
        )


def iterate_exceeded_cosmos_limits(load: Load, cosmos: CosmosDbSize) -> Iterator[ExceededLimit]:
    """Yield the limits of the audit log and of the Cosmos DB account that the load exceeds."""
    appends = load.audit_records_per_second_per_deployment / load.scopes_per_deployment
    most_ru = facts.PARTITION_RU_PER_SECOND / facts.HEADROOM
    if appends > facts.CHAIN_APPENDS_PER_SECOND or cosmos.chain_ru_per_second > most_ru:
        yield ExceededLimit(
            "chain-appends",
            f"A chain gets {appends:,.0f} records/s, {cosmos.chain_ru_per_second:,.0f} RU/s; it takes about "
            f"{facts.CHAIN_APPENDS_PER_SECOND:,} records/s, and its partition {facts.PARTITION_RU_PER_SECOND:,} RU/s.",
            "Divide the events over more scopes.",
        )
    if cosmos.verify_seconds > facts.VERIFY_SECONDS:
        days = load.audit_days * facts.VERIFY_SECONDS / cosmos.verify_seconds
        yield ExceededLimit(
            "chain-verify",
            f"After {load.audit_days:,} days a verification may take {cosmos.verify_seconds:,.0f} s; the service "
            f"ends it after {facts.VERIFY_SECONDS} s, perhaps from day {days:,.0f} on.",
            "Divide the events over more scopes, for instance one for each year, or verify offline with "
            "`oi verify-file`, which has no time limit.",
        )
    if not load.production and cosmos.total_ru_per_second > facts.SERVERLESS_RU_PER_SECOND:
        yield ExceededLimit(
            "cosmos-serverless",
            f"The load is {cosmos.total_ru_per_second:,.0f} RU/s; a serverless container has "
            f"{facts.SERVERLESS_RU_PER_SECOND:,}.",
            "Deploy with `cosmosMode` `autoscale`.",
        )


def iterate_exceeded_table_and_archive_limits(
    explorer: DataExplorerSize, archive: ArchiveSize, compaction_seconds: float
) -> Iterator[ExceededLimit]:
    """Yield the limits of Data Explorer and of the cold archive that the load exceeds."""
    if explorer.gb_per_hour > facts.STREAMING_GB_PER_HOUR:
        yield ExceededLimit(
            "streaming-ingestion",
            f"The table gets {explorer.gb_per_hour:,.1f} GB an hour; Azure recommends streaming ingestion up to "
            f"{facts.STREAMING_GB_PER_HOUR}.",
            "Switch the table to queued ingestion (parameter `streamingIngestion` false). Rows then appear after the "
            "batching time of the table, up to minutes, instead of seconds.",
        )
    if archive.list_seconds > compaction_seconds:
        yield ExceededLimit(
            "archive-listing",
            f"The archive grows to {archive.blobs:,.0f} blobs; a run of `compaction` lists all of them, for about "
            f"{archive.list_seconds:,.0f} s, and is due every {compaction_seconds:,.0f} s.",
            "Set `COMPACTION_SCHEDULE` to once an hour or less often (parameter `appSettings`), and let a lifecycle "
            "rule delete blobs that are older than you need.",
        )


def iterate_exceeded_live_stream_limits(live: LiveStreamSize) -> Iterator[ExceededLimit]:
    """Yield the limits of Web PubSub that the load exceeds."""
    if live.units > facts.WEB_PUBSUB_UNITS[-1]:
        yield ExceededLimit(
            "web-pubsub-units",
            f"A deployment needs {live.units:,} units for {live.messages_in_per_second:,.0f} published and "
            f"{live.messages_out_per_second:,.0f} delivered messages/s; a Standard service has "
            f"{facts.WEB_PUBSUB_UNITS[-1]}.",
            "Send fewer, larger messages, divide the plant into more deployments, or deploy without a live stream "
            "(parameter `withLiveStream` false; calculate with `--listeners 0`) and let dashboards query. On Azure, "
            "the app publishes every impulse, even without listeners.",
        )


def iterate_exceeded_instance_limits(load: Load, groups: dict[str, ScalingGroup]) -> Iterator[ExceededLimit]:
    """Yield the limits on the number and the memory of the app's instances that the load exceeds."""
    instances = sum(group.instances for group in groups.values())
    if instances > facts.DEFAULT_INSTANCES:
        yield ExceededLimit(
            "instances",
            f"The app needs {instances:,} instances; the templates allow {facts.DEFAULT_INSTANCES}, Azure "
            f"{facts.MAX_INSTANCES:,}.",
            "Raise `maximumInstances`, at most to Azure's number; beyond it, divide the load over more deployments.",
        )
    memory_mb = instances * load.instance_memory_mb * load.deployments
    if memory_mb > facts.REGION_MEMORY_MB:
        yield ExceededLimit(
            "memory-quota",
            f"All deployments need {memory_mb:,} MB of instances; a subscription has {facts.REGION_MEMORY_MB:,} MB for "
            "Flex Consumption in a region.",
            "Ask Azure for a higher quota, or use several subscriptions or regions.",
        )
