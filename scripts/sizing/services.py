"""Formulas for the size of each Azure service of one deployment.

The sources of the numbers are in ``scripts/sizing/facts.py``.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

from functions.orchestration_history import SCHEDULE as HISTORY_SCHEDULE
from scripts.sizing import facts
from scripts.sizing.load import Load
from shared.background.runner import Schedule
from shared.oauth.grant_ending import SCHEDULE as GRANTS_SCHEDULE
from shared.settings import Settings

_ANY_DAY = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EventHubsSize:
    """Size and load of the Event Hubs namespace, which has two hubs: messages, and normalised events (impulses).

    Attributes:
        events_in_per_second: events sent to both hubs.
        mb_in_per_second: MB sent to both hubs.
        events_out_per_second: events read by all consumer groups.
        mb_out_per_second: MB read by all consumer groups.
        throughput_units: throughput units that this load requires, even if the Standard tier does not offer so many.
        processing_units: units of the Premium tier; 0 if the Standard tier suffices.
        partitions: number of partitions of each hub.
        partition_messages_per_second: number of messages that one reader of a partition can process.
        billed_events_per_second: number of events that Azure bills, one for every started 64 KB of an event.
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
    """Group of functions that scale together on Flex Consumption, and its load.

    Attributes:
        instances: number of instances that the group requires.
        executions_per_second: number of invocations of functions per second.
        billed_seconds_per_second: instance seconds billed per second, which is the mean number of billed instances.
    """

    instances: int
    executions_per_second: float
    billed_seconds_per_second: float


@dataclass(frozen=True, slots=True)
class BackgroundLoad:
    """Load that the timer for background jobs causes.

    Attributes:
        tick_seconds: time between two runs of the timer.
        runs_per_month: number of runs per month, by name of the job.
        ru_per_second: request units of Cosmos DB per second for the leases of the jobs.
    """

    tick_seconds: float
    runs_per_month: Mapping[str, float]
    ru_per_second: float


@dataclass(frozen=True, slots=True)
class CosmosDbSize:
    """Size and load of the Cosmos DB account.

    Attributes:
        ru_per_append: request units of one appended audit record, including its share of the write of the chain head.
        ru_per_second: mean request units per second, by purpose.
        autoscale_max_ru_per_second: value for the template parameter ``cosmosMaxThroughput``; 0 if serverless.
        verify_ru: maximum request units to verify one audit chain that is ``audit_days`` old.
        verify_seconds: minimum duration of this verification, at 10,000 RU/s.
        chain_ru_per_second: request units per second that appends to one audit chain use.
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
        """Mean request units of Cosmos DB per second, for all purposes together."""
        return sum(self.ru_per_second.values())


@dataclass(frozen=True, slots=True)
class DataExplorerSize:
    """Size of the Data Explorer cluster.

    Attributes:
        gb_per_hour: GB of JSON ingested per hour.
        hot_gb: compressed GB in the cache.
        stored_gb: compressed GB in storage.
        machine: size of a machine; ``dev`` for the cluster without a service level.
        machines: number of machines.
        cores: number of cores of all machines.
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
        gb: size of the archive in GB after ``archive_days``.
        hot_gb: part of ``gb`` that is in the hot tier.
        blobs: number of blobs after ``archive_days``, when the batches of each hour have been merged.
        writes_per_second: maximum number of blobs that the trigger writes per second.
        lists_per_month: number of pages of blob listings that the job ``compaction`` reads.
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
        messages_in_per_second: telemetry events that the app publishes: all events, because the app cannot know on
            Azure which groups have listeners.
        messages_out_per_second: number of messages delivered to listeners.
        units: minimum number of units for this load, even if the Standard tier offers fewer.
        billed_messages_per_month: number of delivered messages beyond the free ones.
    """

    messages_in_per_second: float
    messages_out_per_second: float
    units: int
    billed_messages_per_month: float


def compute_impulse_bytes(load: Load) -> int:
    """Return the size in bytes of a normalised telemetry event (impulse): the message and its envelope."""
    return load.message_bytes + facts.IMPULSE_ENVELOPE_BYTES


def round_up_to_size(required: float, available_sizes: Sequence[int]) -> int:
    """Return the smallest available size that is at least ``required``; if all are smaller, round ``required`` up."""
    return next((size for size in available_sizes if size >= required), ceil(required))


def compute_partition_reader_messages_per_second(connection_count: int, partition_count: int) -> float:
    """Return the number of messages per second that one reader of a partition can process.

    A full batch takes the processor time of its events and one round trip for each connection in the batch, because the
    reader sends the events of each connection separately.

    Args:
        connection_count: number of connections, which are spread evenly over the partitions of a hub.
        partition_count: number of partitions of the hub.
    """
    connections_in_batch = min(ceil(connection_count / partition_count), facts.BATCH_EVENTS)
    seconds = facts.BATCH_EVENTS * facts.MESSAGE_CPU_SECONDS + connections_in_batch * facts.ROUND_TRIP_SECONDS
    return facts.BATCH_EVENTS / seconds


def compute_event_hubs_size(load: Load) -> EventHubsSize:
    """Compute the size of the Event Hubs namespace.

    Events and bytes in both directions determine the number of units; bytes and the capacity of readers determine the
    number of partitions.
    """
    messages = load.messages_per_second_per_deployment
    message_mb, impulse_mb = (size / facts.BYTES_PER_MB for size in (load.message_bytes, compute_impulse_bytes(load)))
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
        _compute_partition_count(load.connections_per_deployment, facts.HEADROOM * messages),
    )
    rate = compute_partition_reader_messages_per_second(load.connections_per_deployment, partitions)
    billed = messages * sum(
        max(1, ceil(size / facts.BILLED_EVENT_BYTES)) for size in (load.message_bytes, compute_impulse_bytes(load))
    )
    return EventHubsSize(events_in, mb_in, events_out, mb_out, units, processing_units, partitions, rate, billed)


def _compute_partition_count(connection_count: int, messages_per_second: float) -> int:
    """Return the smallest number of partitions whose readers together can process the messages."""
    slowest = compute_partition_reader_messages_per_second(facts.BATCH_EVENTS, 1)
    candidates = range(1, ceil(messages_per_second / slowest) + 2)
    # More partitions have fewer connections each, so the sum grows with their number.
    return candidates[
        bisect_left(
            candidates,
            messages_per_second,
            key=lambda count: count * compute_partition_reader_messages_per_second(connection_count, count),
        )
    ]


def compute_function_sizes(load: Load, hubs: EventHubsSize, background: BackgroundLoad) -> dict[str, ScalingGroup]:
    """Compute the size of each scaling group by name: HTTP functions, orchestrations, and one for each other function.

    An instance reads whole partitions; a function that reads a hub therefore has no more instances than partitions.
    The function ``ingest`` gets enough instances for all partitions to send a batch at the same time.
    """
    at_once = load.requests_per_second_per_deployment * facts.REQUEST_SECONDS / facts.HTTP_CONCURRENCY
    busy = min(
        hubs.partitions, ceil(facts.HEADROOM * load.messages_per_second_per_deployment * facts.MESSAGE_CPU_SECONDS)
    )
    batches = compute_batches_per_second(load, hubs)
    sending = ceil(hubs.partitions / facts.SENDS_AT_ONCE)
    return {
        "ingest": _compute_group_size(load, "ingest", max(busy, sending), batches),
        **{name: _compute_group_size(load, name, busy, batches) for name in ("archive", "live")},
        "http": _compute_group_size(
            load, "http", ceil(facts.HEADROOM * at_once), load.requests_per_second_per_deployment
        ),
        # Orchestrations of downloads, whose executions the model does not count.
        "durable": _compute_group_size(load, "durable", 1, 0),
        "background": _compute_group_size(load, "background", 1, 1 / background.tick_seconds),
    }


def compute_batches_per_second(load: Load, hubs: EventHubsSize) -> float:
    """Return how many batches per second Azure passes to a function that reads a hub.

    A batch has at least one message. If batches are not full, a partition has at most one batch per ``batch_seconds``.
    """
    return min(
        load.messages_per_second_per_deployment,
        max(hubs.partitions / load.batch_seconds, load.messages_per_second_per_deployment / facts.BATCH_EVENTS),
    )


def _compute_group_size(
    load: Load, group_name: str, required_instances: int, executions_per_second: float
) -> ScalingGroup:
    """Compute the number of instances of a scaling group, at least ``required_instances``, and its billed time.

    Azure bills each execution for at least a second, and never more than the time of all instances together.
    """
    ready = facts.ALWAYS_READY.get(group_name, 0) if load.production else 0
    instances = max(1, ready, required_instances)
    billed = min(float(instances), executions_per_second * facts.LEAST_BILLED_SECONDS)
    return ScalingGroup(instances, executions_per_second, billed)


def compute_background_load(load: Load) -> BackgroundLoad:
    """Compute how often the background jobs run, and the request units of their leases.

    The background timer starts the jobs, so no job runs more often than the timer.
    """
    settings = Settings.read({})
    schedules = {
        "simulators": settings.simulator_schedule if load.simulators else "",
        "live-streams": settings.live_schedule if load.listeners else "",
        "oauth-grants": GRANTS_SCHEDULE,
        "checkpoints": settings.checkpoint_schedule,
        "alerts": settings.alert_schedule,
        "audit-overview": settings.audit_overview_schedule,
        "verification": settings.verify_schedule,
        "compaction": settings.compaction_schedule,
        "download-expiry": settings.download_expiry_schedule,
        "webhooks": settings.webhook_schedule,
        "webhook-expiry": settings.webhook_expiry_schedule,
        "orchestration-history": HISTORY_SCHEDULE,
    }
    tick = Schedule(settings.background_schedule if load.simulators else facts.SCHEDULE_WITHOUT_SIMULATORS)
    tick_seconds = tick.compute_next_interval(_ANY_DAY).total_seconds()
    runs = {
        job: facts.SECONDS_PER_MONTH / max(tick_seconds, Schedule(text).compute_next_interval(_ANY_DAY).total_seconds())
        for job, text in schedules.items()
        if text
    }
    # A job's item is changed twice, for the lease and its release; each change is a point read and a write.
    per_run = 2 * (compute_read_request_units(1) + compute_write_request_units(1))
    return BackgroundLoad(tick_seconds, runs, sum(runs.values()) / facts.SECONDS_PER_MONTH * per_run)


def compute_write_request_units(item_kilobytes: float) -> float:
    """Return the Cosmos DB request units of a write, interpolated between the published numbers for 1 KB and 100 KB."""
    return _interpolate_request_units(facts.WRITE_RU, item_kilobytes)


def compute_read_request_units(item_kilobytes: float) -> float:
    """Return the Cosmos DB request units of a point read with bounded staleness."""
    return facts.STRONGER_READ_FACTOR * _interpolate_request_units(facts.READ_RU, item_kilobytes)


def _interpolate_request_units(units_for_1_and_100_kb: tuple[float, float], item_kilobytes: float) -> float:
    (least, most), (smallest, largest) = units_for_1_and_100_kb, facts.RU_KB
    return least + (max(item_kilobytes, smallest) - smallest) * (most - least) / (largest - smallest)


def compute_cosmos_size(load: Load, hubs: EventHubsSize, background: BackgroundLoad) -> CosmosDbSize:
    """Compute the size of Cosmos DB: audit records, connection states, rate limits, checkpoints and leases."""
    appends, record_kb = load.audit_records_per_second_per_deployment, load.audit_record_bytes / facts.BYTES_PER_KB
    # Each process writes one batch per chain at a time; records that arrive meanwhile form the next batch.
    commits = min(appends, load.scopes_per_deployment / facts.COMMIT_SECONDS)
    append_ru = appends * compute_write_request_units(record_kb) + commits * compute_write_request_units(1)
    # Each partition writes one item at a time; states that arrive during a write are part of the next write.
    state_writes = min(compute_batches_per_second(load, hubs), hubs.partitions / facts.ROUND_TRIP_SECONDS)
    state_kb = (
        ceil(load.connections_per_deployment / hubs.partitions) * facts.CONNECTION_STATE_BYTES / facts.BYTES_PER_KB
    )
    sweeps = background.runs_per_month["checkpoints"] / facts.SECONDS_PER_MONTH
    grown = min(float(load.scopes_per_deployment), appends / sweeps)
    sweep_ru = (
        facts.CHAIN_CONTAINERS * facts.STRONGER_READ_FACTOR * facts.SWEEP_QUERY_RU
        + grown * compute_read_request_units(1)
    )
    ru = {
        "audit appends": append_ru,
        "connection states": state_writes * compute_write_request_units(state_kb),
        # One write a second for each instance and principal that is busy; at most one for each request.
        "rate limits": load.requests_per_second_per_deployment * compute_write_request_units(1),
        "checkpoints": sweeps * sweep_ru,
        "background leases": background.ru_per_second,
    }
    chain_records = appends * facts.SECONDS_PER_DAY * load.audit_days / load.scopes_per_deployment
    verify_ru = chain_records * compute_read_request_units(record_kb)
    seconds = max(verify_ru / facts.PARTITION_RU_PER_SECOND, chain_records / facts.VERIFY_RECORDS_PER_SECOND)
    stored = appends * facts.SECONDS_PER_DAY * load.audit_days * load.audit_record_bytes * facts.RECORD_STORED_FACTOR
    steps = max(1, ceil(facts.HEADROOM * sum(ru.values()) / facts.AUTOSCALE_STEP_RU))
    return CosmosDbSize(
        append_ru / appends if appends else compute_write_request_units(record_kb) + compute_write_request_units(1),
        ru,
        steps * facts.AUTOSCALE_STEP_RU if load.production else 0,
        verify_ru,
        seconds,
        append_ru / load.scopes_per_deployment,
        stored / facts.BYTES_PER_GB,
    )


def compute_data_explorer_size(load: Load) -> DataExplorerSize:
    """Compute the size of the Data Explorer cluster, from the data in its cache and the ingestion rate of a core."""
    mb_per_second = load.messages_per_second_per_deployment * compute_impulse_bytes(load) / facts.BYTES_PER_MB
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
    raise AssertionError("The list of machine sizes is empty.")


def compute_archive_size(load: Load, hubs: EventHubsSize, background: BackgroundLoad) -> ArchiveSize:
    """Compute the size of the cold archive, which has one merged blob for each connection and hour."""
    blobs = load.connections_per_deployment * 24.0 * load.archive_days
    rows_gb_per_day = (
        load.messages_per_second_per_deployment
        * facts.SECONDS_PER_DAY
        * compute_impulse_bytes(load)
        * facts.ARCHIVED_SHARE
    )
    gb_per_day = (rows_gb_per_day + load.connections_per_deployment * 24 * facts.BLOB_BYTES) / facts.BYTES_PER_GB
    # A batch becomes a blob for each of its connections, so there are never more blobs than messages.
    batches = compute_batches_per_second(load, hubs)
    writes = min(
        load.messages_per_second_per_deployment, batches * ceil(load.connections_per_deployment / hubs.partitions)
    )
    pages = ceil(blobs / facts.BLOBS_PER_LIST)
    return ArchiveSize(
        gb_per_day * load.archive_days,
        gb_per_day * min(load.archive_days, facts.HOT_ARCHIVE_DAYS),
        blobs,
        writes,
        pages * background.runs_per_month["compaction"],
        pages * facts.LIST_SECONDS,
    )


def compute_live_stream_size(load: Load) -> LiveStreamSize:
    """Compute the size of Web PubSub, from the number of listeners and the messages in and out."""
    if not load.listeners:
        # The templates create the service also for a deployment without a live stream.
        return LiveStreamSize(0.0, 0.0, facts.WEB_PUBSUB_UNITS[0], 0.0)
    messages_in = load.messages_per_second_per_deployment
    heard = min(load.connections_per_listener, load.connections_per_deployment) / load.connections_per_deployment
    messages_out = load.listeners_per_deployment * messages_in * heard
    needed = max(
        load.listeners_per_deployment / facts.LISTENERS_PER_UNIT,
        facts.HEADROOM * messages_in / facts.REST_MESSAGES_PER_UNIT,
        facts.HEADROOM * messages_out / facts.MESSAGES_OUT_PER_UNIT,
    )
    units = round_up_to_size(needed, facts.WEB_PUBSUB_UNITS)
    billed_each = ceil(compute_impulse_bytes(load) / facts.BILLED_MESSAGE_BYTES)
    per_month = messages_out * billed_each * facts.SECONDS_PER_MONTH
    free = units * facts.FREE_MESSAGES_PER_UNIT_DAY * facts.DAYS_PER_MONTH
    return LiveStreamSize(messages_in, messages_out, units, max(0.0, per_month - free))
