"""Formulas for each Azure service of one deployment. Sources of the numbers: ``scripts/sizing/facts.py``."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

from scripts.sizing import facts
from scripts.sizing.load import Load
from shared.background.schedules import Schedule
from shared.settings import Settings

_ANY_DAY = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EventHubsSize:
    """Size of the Event Hubs namespace.

    Attributes:
        events_in_per_second: events sent to both hubs.
        mb_in_per_second: the same in MB.
        events_out_per_second: events read by all consumer groups.
        mb_out_per_second: the same in MB.
        throughput_units: units of the Standard tier that this load needs, even if the tier has fewer.
        processing_units: units of the Premium tier; 0 if the Standard tier suffices.
        partitions: of each hub.
        partition_messages_per_second: messages that one reader of a partition processes.
        billed_events_per_second: events in, each started 64 KB as one.
    """

    events_in_per_second: float
    mb_in_per_second: float
    events_out_per_second: float
    mb_out_per_second: float
    throughput_units: int
    processing_units: int
    partitions: int
    partition_messages_per_second: float
    billed_events_per_second: float


@dataclass(frozen=True, slots=True)
class ScalingGroup:
    """Functions that scale together on Flex Consumption.

    Attributes:
        instances: that the group needs.
        executions_per_second: invocations.
        billed_seconds_per_second: instance seconds that are billed in each second, for all instances together.
    """

    instances: int
    executions_per_second: float
    billed_seconds_per_second: float


@dataclass(frozen=True, slots=True)
class BackgroundLoad:
    """The background timer.

    Attributes:
        tick_seconds: time between two ticks.
        runs_per_month: runs of each job.
        ru_per_second: request units of the leases.
    """

    tick_seconds: float
    runs_per_month: Mapping[str, float]
    ru_per_second: float


@dataclass(frozen=True, slots=True)
class CosmosDbSize:
    """Size of Cosmos DB.

    Attributes:
        ru_per_append: request units of one audit record, its share of the head included.
        ru_per_second: mean load by purpose.
        autoscale_max_ru_per_second: for ``cosmosMaxThroughput``; 0 if serverless.
        verify_ru: at most, to verify one chain that is ``audit_days`` old.
        verify_seconds: at least, at 10,000 RU/s.
        chain_ru_per_second: load of one chain.
        stored_gb: size of the audit chains after ``audit_days``.
    """

    ru_per_append: float
    ru_per_second: Mapping[str, float]
    autoscale_max_ru_per_second: int
    verify_ru: float
    verify_seconds: float
    chain_ru_per_second: float
    stored_gb: float

    @property
    def total_ru_per_second(self) -> float:
        """Mean load."""
        return sum(self.ru_per_second.values())


@dataclass(frozen=True, slots=True)
class DataExplorerSize:
    """Size of the Data Explorer cluster.

    Attributes:
        gb_per_hour: JSON that is ingested.
        hot_gb: in the cache, compressed.
        stored_gb: in storage, compressed.
        machine: size of a machine; ``dev`` for the cluster without a service level.
        machines: how many.
        cores: of all machines.
    """

    gb_per_hour: float
    hot_gb: float
    stored_gb: float
    machine: str
    machines: int
    cores: int


@dataclass(frozen=True, slots=True)
class ArchiveSize:
    """Size of the cold archive.

    Attributes:
        gb: after ``archive_days``.
        hot_gb: of these, in the hot tier.
        blobs: merged blobs after ``archive_days``.
        writes_per_second: blobs that the trigger writes, at most.
        lists_per_month: pages of listings by the job ``compaction``.
        list_seconds: duration of one listing.
    """

    gb: float
    hot_gb: float
    blobs: float
    writes_per_second: float
    lists_per_month: float
    list_seconds: float


@dataclass(frozen=True, slots=True)
class LiveStreamSize:
    """Size of Web PubSub.

    Attributes:
        messages_in_per_second: impulses that the app publishes; every impulse, since the app cannot know on Azure
            which groups have listeners.
        messages_out_per_second: deliveries.
        units: the least number of units that suffices, even if the Standard tier has fewer.
        billed_messages_per_month: beyond the free ones.
    """

    messages_in_per_second: float
    messages_out_per_second: float
    units: int
    billed_messages_per_month: float


def impulse_bytes(load: Load) -> int:
    """Return the size of an impulse: the message and its envelope."""
    return load.message_bytes + facts.IMPULSE_ENVELOPE_BYTES


def round_up_to_size(needed: float, sizes: Sequence[int]) -> int:
    """Return the smallest size that suffices, or the rounded need if none does."""
    return next((size for size in sizes if size >= needed), ceil(needed))


def partition_rate(connections: int, partitions: int) -> float:
    """Return the messages/s that one reader of a partition processes.

    A full batch takes the processor time of its events and a round trip for each connection in it, because a
    connection's events are sent as a batch of their own.
    """
    connections_in_batch = min(ceil(connections / partitions), facts.BATCH_EVENTS)
    seconds = facts.BATCH_EVENTS * facts.MESSAGE_CPU_SECONDS + connections_in_batch * facts.ROUND_TRIP_SECONDS
    return facts.BATCH_EVENTS / seconds


def size_event_hubs(load: Load) -> EventHubsSize:
    """Size the namespace: units by events and bytes in both directions, partitions by bytes and reader capacity."""
    messages = load.messages_each
    message_mb, impulse_mb = (size / facts.BYTES_PER_MB for size in (load.message_bytes, impulse_bytes(load)))
    events_in, mb_in = facts.HUBS * messages, messages * (message_mb + impulse_mb)
    events_out = (1 + facts.IMPULSE_READERS) * messages
    mb_out = messages * (message_mb + facts.IMPULSE_READERS * impulse_mb)
    shares = (
        events_in / facts.UNIT_EVENTS_IN,
        mb_in / facts.UNIT_MB_IN,
        events_out / facts.UNIT_EVENTS_OUT,
        mb_out / facts.UNIT_MB_OUT,
    )
    units = max(1, ceil(facts.HEADROOM * max(shares)))
    premium = max(mb_in / facts.PROCESSING_UNIT_MB_IN, mb_out / facts.PROCESSING_UNIT_MB_OUT)
    processing_units = (
        round_up_to_size(facts.HEADROOM * premium, facts.PROCESSING_UNITS) if units > facts.MAX_THROUGHPUT_UNITS else 0
    )
    partitions = max(
        facts.LEAST_PARTITIONS,
        ceil(facts.HEADROOM * messages * impulse_mb / facts.PARTITION_MB_IN),
        _size_partitions_by_time(load.connections_each, facts.HEADROOM * messages),
    )
    rate = partition_rate(load.connections_each, partitions)
    billed = messages * sum(
        max(1, ceil(size / facts.BILLED_EVENT_BYTES)) for size in (load.message_bytes, impulse_bytes(load))
    )
    return EventHubsSize(events_in, mb_in, events_out, mb_out, units, processing_units, partitions, rate, billed)


def _size_partitions_by_time(connections: int, messages_per_second: float) -> int:
    """Return the minimum number of partitions whose readers together process the messages."""
    slowest = partition_rate(facts.BATCH_EVENTS, 1)
    candidates = range(1, ceil(messages_per_second / slowest) + 2)
    # More partitions have fewer connections each, so the sum grows with their number.
    return candidates[
        bisect_left(candidates, messages_per_second, key=lambda count: count * partition_rate(connections, count))
    ]


def size_functions(load: Load, hubs: EventHubsSize, background: BackgroundLoad) -> dict[str, ScalingGroup]:
    """Size the scaling groups. HTTP functions share one, so do orchestrations; every other trigger has its own.

    An instance reads whole partitions, so a function that reads a hub has no more instances than partitions.
    """
    at_once = load.requests_each * facts.REQUEST_SECONDS / facts.HTTP_CONCURRENCY
    busy = min(hubs.partitions, ceil(facts.HEADROOM * load.messages_each * facts.MESSAGE_CPU_SECONDS))
    batches = batches_per_second(load, hubs)
    readers = ("ingest", "archive", "live") if load.listeners else ("ingest", "archive")
    return {
        **{name: _size_group(load, name, busy, batches) for name in readers},
        "http": _size_group(load, "http", ceil(facts.HEADROOM * at_once), load.requests_each),
        # Orchestrations of downloads, whose executions the model does not count.
        "durable": _size_group(load, "durable", 1, 0),
        "background": _size_group(load, "background", 1, 1 / background.tick_seconds),
    }


def batches_per_second(load: Load, hubs: EventHubsSize) -> float:
    """Return the invocations of a function that reads a hub.

    At most one for each message and one for each partition and ``batch_seconds``; more where batches are full.
    """
    return min(load.messages_each, max(hubs.partitions / load.batch_seconds, load.messages_each / facts.BATCH_EVENTS))


def _size_group(load: Load, name: str, needed: int, executions_per_second: float) -> ScalingGroup:
    """Bill each execution for at least a second, and never more than all instances all the time."""
    ready = facts.ALWAYS_READY.get(name, 0) if load.production else 0
    instances = max(1, ready, needed)
    billed = min(float(instances), executions_per_second * facts.LEAST_BILLED_SECONDS)
    return ScalingGroup(instances, executions_per_second, billed)


def size_background(load: Load) -> BackgroundLoad:
    """Count the ticks and the jobs' runs; a job runs no more often than the timer ticks."""
    settings = Settings.read({})
    schedules = {
        "simulators": settings.simulator_schedule if load.simulators else "",
        "live-streams": settings.live_schedule if load.listeners else "",
        "checkpoints": settings.checkpoint_schedule,
        "compaction": settings.compaction_schedule,
        "download-expiry": settings.download_expiry_schedule,
    }
    tick = Schedule(settings.background_schedule if load.simulators else facts.SCHEDULE_WITHOUT_SIMULATORS)
    tick_seconds = tick.interval(_ANY_DAY).total_seconds()
    runs = {
        job: facts.SECONDS_PER_MONTH / max(tick_seconds, Schedule(text).interval(_ANY_DAY).total_seconds())
        for job, text in schedules.items()
        if text
    }
    # Two changes of a job's item: the claim and the release, each a point read and a write.
    per_run = 2 * (read_ru(1) + write_ru(1))
    return BackgroundLoad(tick_seconds, runs, sum(runs.values()) / facts.SECONDS_PER_MONTH * per_run)


def write_ru(kilobytes: float) -> float:
    """Return the request units of a write: the published points for 1 KB and 100 KB, and the line through them."""
    return _interpolate(facts.WRITE_RU, kilobytes)


def read_ru(kilobytes: float) -> float:
    """Return the request units of a point read under bounded staleness."""
    return facts.STRONGER_READ_FACTOR * _interpolate(facts.READ_RU, kilobytes)


def _interpolate(points: tuple[float, float], kilobytes: float) -> float:
    (least, most), (smallest, largest) = points, facts.RU_KB
    return least + (max(kilobytes, smallest) - smallest) * (most - least) / (largest - smallest)


def size_cosmos(load: Load, hubs: EventHubsSize, background: BackgroundLoad) -> CosmosDbSize:
    """Size Cosmos DB: appends with their heads, connection states, rate limits, checkpoints, leases."""
    appends, record_kb = load.audit_each, load.audit_record_bytes / facts.BYTES_PER_KB
    # One batch at a time for each chain and process; what arrives meanwhile forms the next batch.
    commits = min(appends, load.scopes_each / facts.COMMIT_SECONDS)
    append_ru = appends * write_ru(record_kb) + commits * write_ru(1)
    # One item for each partition; what arrives during a write is part of the next one.
    state_writes = min(batches_per_second(load, hubs), hubs.partitions / facts.ROUND_TRIP_SECONDS)
    state_kb = ceil(load.connections_each / hubs.partitions) * facts.CONNECTION_STATE_BYTES / facts.BYTES_PER_KB
    sweeps = background.runs_per_month["checkpoints"] / facts.SECONDS_PER_MONTH
    grown = min(float(load.scopes_each), appends / sweeps)
    sweep_ru = facts.CHAIN_CONTAINERS * facts.STRONGER_READ_FACTOR * facts.SWEEP_QUERY_RU + grown * read_ru(1)
    ru = {
        "audit appends": append_ru,
        "connection states": state_writes * write_ru(state_kb),
        # One write a second for each instance and principal that is busy; at most one for each request.
        "rate limits": load.requests_each * write_ru(1),
        "checkpoints": sweeps * sweep_ru,
        "background leases": background.ru_per_second,
    }
    chain_records = appends * facts.SECONDS_PER_DAY * load.audit_days / load.scopes_each
    verify_ru = chain_records * read_ru(record_kb)
    seconds = max(verify_ru / facts.PARTITION_RU_PER_SECOND, chain_records / facts.VERIFY_RECORDS_PER_SECOND)
    stored = appends * facts.SECONDS_PER_DAY * load.audit_days * load.audit_record_bytes * facts.RECORD_STORED_FACTOR
    steps = max(1, ceil(facts.HEADROOM * sum(ru.values()) / facts.AUTOSCALE_STEP_RU))
    return CosmosDbSize(
        append_ru / appends if appends else write_ru(record_kb) + write_ru(1),
        ru,
        steps * facts.AUTOSCALE_STEP_RU if load.production else 0,
        verify_ru,
        seconds,
        append_ru / load.scopes_each,
        stored / facts.BYTES_PER_GB,
    )


def size_data_explorer(load: Load) -> DataExplorerSize:
    """Size the cluster by its cache and by the ingestion rate of its cores."""
    mb_per_second = load.messages_each * impulse_bytes(load) / facts.BYTES_PER_MB
    gb_per_day = mb_per_second * facts.SECONDS_PER_DAY * facts.BYTES_PER_MB / facts.BYTES_PER_GB
    compressed_gb_per_day = gb_per_day * facts.TABLE_COPIES / load.compression
    hot_gb = compressed_gb_per_day * min(load.hot_days, load.retention_days)
    stored_gb = compressed_gb_per_day * load.retention_days
    cores = facts.HEADROOM * mb_per_second / facts.CORE_MB_PER_SECOND
    for machine, machine_cores, disk_gb in facts.MACHINES:
        machines = max(ceil(hot_gb / (disk_gb * facts.CACHE_SHARE)), ceil(cores / machine_cores))
        if not load.production and machines <= 1:
            return DataExplorerSize(gb_per_day / 24, hot_gb, stored_gb, "dev", 1, machine_cores)
        if machines <= facts.SMALL_CLUSTER_MACHINES or machine == facts.MACHINES[-1][0]:
            machines = max(facts.LEAST_MACHINES, machines)
            return DataExplorerSize(gb_per_day / 24, hot_gb, stored_gb, machine, machines, machines * machine_cores)
    raise AssertionError("The last machine size always returns.")


def size_archive(load: Load, hubs: EventHubsSize, background: BackgroundLoad) -> ArchiveSize:
    """Size the archive: one merged blob for each connection and hour, rows in proportion to the impulses."""
    blobs = load.connections_each * 24.0 * load.archive_days
    rows_gb_per_day = load.messages_each * facts.SECONDS_PER_DAY * impulse_bytes(load) * facts.ARCHIVED_SHARE
    gb_per_day = (rows_gb_per_day + load.connections_each * 24 * facts.BLOB_BYTES) / facts.BYTES_PER_GB
    # A batch becomes a blob for each of its connections, so there are never more blobs than messages.
    batches = batches_per_second(load, hubs)
    writes = min(load.messages_each, batches * ceil(load.connections_each / hubs.partitions))
    pages = ceil(blobs / facts.BLOBS_PER_LIST)
    return ArchiveSize(
        gb_per_day * load.archive_days,
        gb_per_day * min(load.archive_days, facts.HOT_ARCHIVE_DAYS),
        blobs,
        writes,
        pages * background.runs_per_month["compaction"],
        pages * facts.LIST_SECONDS,
    )


def size_live_stream(load: Load) -> LiveStreamSize:
    """Size Web PubSub by its listeners and by the messages in and out."""
    if not load.listeners:
        return LiveStreamSize(0.0, 0.0, 0, 0.0)
    messages_in = load.messages_each
    heard = min(load.connections_per_listener, load.connections_each) / load.connections_each
    messages_out = load.listeners_each * messages_in * heard
    needed = max(
        load.listeners_each / facts.LISTENERS_PER_UNIT,
        facts.HEADROOM * messages_in / facts.REST_MESSAGES_PER_UNIT,
        facts.HEADROOM * messages_out / facts.MESSAGES_OUT_PER_UNIT,
    )
    units = round_up_to_size(needed, facts.WEB_PUBSUB_UNITS)
    billed_each = ceil(impulse_bytes(load) / facts.BILLED_MESSAGE_BYTES)
    per_month = messages_out * billed_each * facts.SECONDS_PER_MONTH
    free = units * facts.FREE_MESSAGES_PER_UNIT_DAY * facts.DAYS_PER_MONTH
    return LiveStreamSize(messages_in, messages_out, units, max(0.0, per_month - free))
