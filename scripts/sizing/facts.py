"""Numbers that the sizing model uses, each with its source.

*Published* numbers are from the named page of Azure. *Measured* numbers are from this repository, on a development
machine with two cores. *Assumed* numbers are neither published nor measured; replace them by measurements of your
deployment. Nothing was measured on Azure.
"""

from typing import Final

from shared.backends.azure.event_hubs import PRODUCERS_PER_HUB

SECONDS_PER_HOUR: Final = 3_600
SECONDS_PER_DAY: Final = 86_400
HOURS_PER_MONTH: Final = 730
SECONDS_PER_MONTH: Final = HOURS_PER_MONTH * SECONDS_PER_HOUR
DAYS_PER_MONTH: Final = HOURS_PER_MONTH / 24
BYTES_PER_KB: Final = 1_024
BYTES_PER_MB: Final = 1_000_000
BYTES_PER_GB: Final = 1_000_000_000

HEADROOM: Final = 1.25
"""Assumed: sizes are for 125 % of the mean load. Increase the load itself for higher peaks."""

# Messages. Measured: encoding a message of 134 bytes as an impulse gives 241 to 250 bytes.
IMPULSE_ENVELOPE_BYTES: Final = 120
BATCH_EVENTS: Final = 1_000
"""``maxEventBatchSize`` of host.json."""
ROUND_TRIP_SECONDS: Final = 0.01
"""Assumed: one call to Event Hubs, Blob Storage or Cosmos DB within the region."""
SENDS_AT_ONCE: Final = PRODUCERS_PER_HUB
"""Batches that an instance sends to a hub at the same time."""
MESSAGE_CPU_SECONDS: Final = 112e-6
"""Measured: processor time of one message in ingestion, archive and live stream together: 8,900 messages/s on a core.

On Azure each function has instances of its own and does a part of this, so the model overestimates."""

# Event Hubs. Published: learn.microsoft.com/azure/event-hubs/event-hubs-scalability, -quotas and -faq.
HUBS: Final = 2
"""Each message is sent twice: to ``telemetry`` and, as an impulse, to ``impulses``."""
IMPULSE_READERS: Final = 3
"""Consumer groups ``live``, ``archive`` and ``adx``."""
UNIT_EVENTS_IN: Final = 1_000
UNIT_MB_IN: Final = 1
UNIT_EVENTS_OUT: Final = 4_096
UNIT_MB_OUT: Final = 2
MAX_THROUGHPUT_UNITS: Final = 40
PROCESSING_UNIT_MB_IN: Final = 5
"""Published as 5 to 10 MB/s; the lower end."""
PROCESSING_UNIT_MB_OUT: Final = 10
PROCESSING_UNITS: Final = (1, 2, 4, 6, 8, 10, 12, 16)
PARTITION_MB_IN: Final = 1
"""Published as a recommendation: at most 1 MB/s a partition."""
LEAST_PARTITIONS: Final = 4
"""Default of ``hubPartitions``."""
MAX_PARTITIONS_STANDARD: Final = 32
MAX_PARTITIONS_PREMIUM: Final = 100
BILLED_EVENT_BYTES: Final = 64 * BYTES_PER_KB

# Functions. Published: learn.microsoft.com/azure/azure-functions/flex-consumption-plan.
LEAST_BILLED_SECONDS: Final = 1.0
MAX_INSTANCES: Final = 1_000
DEFAULT_INSTANCES: Final = 100
"""Default of ``maximumInstances``."""
REGION_MEMORY_MB: Final = 512_000
"""Default quota of a subscription for all Flex Consumption apps of a region."""
HTTP_CONCURRENCY: Final = 50
"""Default of ``httpConcurrency``."""
REQUEST_SECONDS: Final = 0.25
"""Assumed: mean duration of a request, store or query engine included."""
ALWAYS_READY: Final = {"http": 2, "durable": 2, "ingest": 2, "archive": 2, "live": 2, "background": 2}
"""Instances in production: those of ``prod.bicepparam``, and two of each other function, because with zone redundancy
Azure runs at least two of each. Published: learn.microsoft.com/azure/reliability/reliability-functions."""

SCHEDULE_WITHOUT_SIMULATORS: Final = "*/5 * * * * *"
"""``BACKGROUND_SCHEDULE`` of the templates, unless simulators send every second."""

# Cosmos DB. Published: learn.microsoft.com/azure/cosmos-db/optimize-cost-reads-writes, request-units, concepts-limits.
READ_RU: Final = (1.0, 10.0)
WRITE_RU: Final = (5.0, 50.0)
"""Request units to read or write an item of 1 KB, and an item of 100 KB."""
RU_KB: Final = (1.0, 100.0)
STRONGER_READ_FACTOR: Final = 2.0
"""Bounded staleness and strong consistency, which the app requires, double the cost of reads."""
PARTITION_RU_PER_SECOND: Final = 10_000
AUTOSCALE_STEP_RU: Final = 1_000
AUTOSCALE_LEAST_SHARE: Final = 0.1
BILLED_RU_PER_SECOND: Final = 100
COMMIT_SECONDS: Final = 0.010
"""Assumed latency of a batch; the benchmark uses the same."""
CHAIN_APPENDS_PER_SECOND: Final = 2_200
"""Measured: group commit of one chain with 64 producers against the test server at 10 ms."""
RECORD_STORED_FACTOR: Final = 1.5
"""Assumed: bytes stored per canonical byte, with escapes, filter fields and index."""
CONNECTION_STATE_BYTES: Final = 105
"""Measured: one connection's counts in the item of a hub partition."""
SERVERLESS_RU_PER_SECOND: Final = 5_000
MAX_CATALOG_ITEMS: Final = 10_000
"""docs/explanation/cosmos.md: connections, surfaces, queries and members together."""
VERIFY_SECONDS: Final = 200
"""The service's own limit of a verification."""
VERIFY_RECORDS_PER_SECOND: Final = 420_000
"""Measured: parse and hash of stored records."""
CHAIN_CONTAINERS: Final = 4
SWEEP_QUERY_RU: Final = 5.0
"""Assumed: one query for chains with new records; ``STRONGER_READ_FACTOR`` multiplies this number."""

# Data Explorer. Published: learn.microsoft.com/azure/data-explorer/ingest-data-streaming and manage-cluster-choose-sku;
# disks of the Eadsv5 series: learn.microsoft.com/azure/virtual-machines/easv5-eadsv5-series.
STREAMING_GB_PER_HOUR: Final = 4
MACHINES: Final = (("e2ads_v5", 2, 75), ("e4ads_v5", 4, 150), ("e8ads_v5", 8, 300), ("e16ads_v5", 16, 600))
"""Name, cores and GB of local disk."""
CACHE_SHARE: Final = 0.7
"""Assumed: part of the disk that is cache; the portal states it for each size."""
LEAST_MACHINES: Final = 2
SMALL_CLUSTER_MACHINES: Final = 4
"""Maximum number of machines of one size; above it, the model takes the next larger size, as the page recommends."""
TABLE_COPIES: Final = 2
"""Rows are stored in ``TelemetryRaw`` and in the materialized view ``Telemetry``."""
CORE_MB_PER_SECOND: Final = 1
"""Assumed: MB/s of JSON that a core ingests, the materialized view and queries included."""

# Blob Storage.
ARCHIVED_SHARE: Final = 0.12
"""Measured: Parquet bytes per byte of impulse, 3,600 impulses of 250 bytes with three random values in one blob."""
BLOB_BYTES: Final = 3_300
"""Measured: size of a blob without its rows."""
HOT_ARCHIVE_DAYS: Final = 60
"""Default of ``archiveCoolAfterDays``."""
BLOBS_PER_LIST: Final = 5_000
LIST_SECONDS: Final = 0.05
"""Assumed: one page of a listing."""

# Web PubSub. Published: learn.microsoft.com/azure/azure-web-pubsub/concept-performance and concept-billing-model.
LISTENERS_PER_UNIT: Final = 800
"""1,000 connections, of which the page recommends to plan for 80 %."""
REST_MESSAGES_PER_UNIT: Final = 180
"""Messages/s of 2 KB that a unit takes over its REST API; published for messages to users, not for groups."""
MESSAGES_OUT_PER_UNIT: Final = 3_000
WEB_PUBSUB_UNITS: Final = (1, 2, 5, 10, 20, 50, 100)
FREE_MESSAGES_PER_UNIT_DAY: Final = 1_000_000
BILLED_MESSAGE_BYTES: Final = 2 * BYTES_PER_KB
CONNECTION_IMPULSES_PER_SECOND: Final = 200
"""docs/how-to/live-stream.md: 200 to 500 for each connection, because its calls run one after another."""
