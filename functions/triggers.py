"""Event Hub triggers (ingest, archive, live stream) and the timer trigger.

An impulse is a normalised telemetry message. `ingest` creates impulses from hub events; `archive` and `live` read
impulses. The setting ``EVENT_HUB_SOURCES`` adds ingest triggers for the Event Hubs of connections.
"""

import typing
from collections.abc import Awaitable, Callable, Sequence

import azure.functions as func

from functions.batch_span import open_event_batch_span
from functions.durable_runner import CLIENT
from functions.hub_events import read_hub_events, read_partition_keys_if_complete
from functions.orchestration_history import get_history_job
from shared.observability.metrics import count, record_histogram_value
from shared.observability.tracing import open_span
from shared.settings import settings
from shared.telemetry.event_hub_sources import parse_event_hub_sources
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB, HubEvent
from shared.wiring import services

blueprint = func.Blueprint()

ARCHIVE_GROUP = "archive"
LIVE_GROUP = "live"

# The worker derives the type of a batch from exactly this form of annotation, `typing.List`.
type _Handler = Callable[[typing.List[func.EventHubEvent], func.Context], Awaitable[None]]  # noqa: UP006  see above


def _register_ingest_function(function_name: str, source_name: str, hub_name: str, consumer_group: str) -> None:
    async def ingest_batch(events: typing.List[func.EventHubEvent], context: func.Context) -> None:  # noqa: UP006  see _Handler
        batch = read_hub_events(events)
        with open_event_batch_span(hub_name, consumer_group, len(batch), context):
            await services().telemetry.ingestor.run(source_name, batch)
        _record_lag(batch, hub_name, consumer_group)
        if batch:
            count("workspace.ingest.events", len(batch))

    ingest_batch.__name__ = function_name
    _add_ingest_trigger(ingest_batch, function_name, hub_name, consumer_group)


def _record_lag(batch: Sequence[HubEvent], hub_name: str, consumer_group: str) -> None:
    """Record the age of the oldest event of a batch, by hub and consumer group."""
    if batch:
        oldest = min(event.enqueued_at for event in batch)
        lag = max(0.0, (services().runtime.now() - oldest).total_seconds())
        record_histogram_value("workspace.ingest.lag", lag, hub=hub_name, group=consumer_group)


def _add_ingest_trigger(handle: _Handler, function_name: str, hub_name: str, consumer_group: str) -> None:
    # Without a retry policy, the host would skip the batch after an exception. The data type is binary, because the
    # host would decode text and thereby damage bodies that are not UTF-8.
    retried = blueprint.retry(
        strategy="exponential_backoff",
        max_retry_count="-1",
        minimum_interval="00:00:01",
        maximum_interval="00:01:00",
    )(handle)
    triggered = blueprint.event_hub_message_trigger(
        arg_name="events",
        event_hub_name=hub_name,
        connection="EventHubs",
        consumer_group=consumer_group,
        cardinality=func.Cardinality.MANY,
        data_type=func.DataType.BINARY,
    )(retried)
    blueprint.function_name(function_name)(triggered)


_register_ingest_function("ingest", TELEMETRY_HUB, TELEMETRY_HUB, "$Default")
for _source in parse_event_hub_sources(settings().event_hub_sources):
    _register_ingest_function(_source.function_name, _source.name, _source.hub, _source.consumer_group)


# Without a retry policy, the host would skip the batch after an exception.
@blueprint.function_name("archive")
@blueprint.event_hub_message_trigger(
    arg_name="events",
    event_hub_name=IMPULSES_HUB,
    connection="EventHubs",
    consumer_group=ARCHIVE_GROUP,
    cardinality=func.Cardinality.MANY,
    data_type=func.DataType.BINARY,
)
@blueprint.retry(
    strategy="exponential_backoff",
    max_retry_count="-1",
    minimum_interval="00:00:01",
    maximum_interval="00:01:00",
)
async def store_in_archive(
    events: typing.List[func.EventHubEvent],  # noqa: UP006  see _Handler
    context: func.Context,
) -> None:
    """Store the telemetry events (impulses) of a batch in the archive."""
    batch = read_hub_events(events)
    with open_event_batch_span(IMPULSES_HUB, ARCHIVE_GROUP, len(batch), context):
        await services().cold_data.archive.store_events(batch)
    _record_lag(batch, IMPULSES_HUB, ARCHIVE_GROUP)


# After five attempts the host skips the batch, because live data is useless after seconds.
@blueprint.function_name("live")
@blueprint.event_hub_message_trigger(
    arg_name="events",
    event_hub_name=IMPULSES_HUB,
    connection="EventHubs",
    consumer_group=LIVE_GROUP,
    cardinality=func.Cardinality.MANY,
    data_type=func.DataType.BINARY,
)
@blueprint.retry(
    strategy="exponential_backoff", max_retry_count="5", minimum_interval="00:00:01", maximum_interval="00:00:20"
)
async def publish_to_live_stream(
    events: typing.List[func.EventHubEvent],  # noqa: UP006  see _Handler
    context: func.Context,
) -> None:
    """Publish the telemetry events (impulses) of a batch to the live stream."""
    if services().settings.web_pubsub_endpoint:
        publisher, keys = services().live_stream.publisher, read_partition_keys_if_complete(events)
        with (
            open_event_batch_span(IMPULSES_HUB, LIVE_GROUP, len(events), context),
            open_span("publish to the live stream"),
        ):
            if keys is None or not await publisher.try_skip_batch_without_listeners(keys, len(events)):
                await publisher.publish_events(read_hub_events(events))
        count("workspace.live.published", len(events))


# All jobs share one timer: on Flex Consumption each timer function scales separately, so several timers could keep
# several instances running.
@blueprint.function_name("background")
@blueprint.timer_trigger(arg_name="timer", schedule="%BACKGROUND_SCHEDULE%", use_monitor=False)
@blueprint.durable_client_input(client_name="client")  # type: ignore[untyped-decorator]  # the SDK has no types
async def run_background_jobs(timer: func.TimerRequest, client: str) -> None:  # noqa: ARG001  the worker passes it by name
    """Start the background jobs that are due."""
    CLIENT.set(client)
    await services().background.runner.run_due_jobs([get_history_job()])
