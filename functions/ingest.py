"""Event Hub triggers: what devices and callers send, on its way to the impulses."""

import typing
from collections.abc import Awaitable, Callable, Sequence

import azure.functions as func

from functions.batch_span import batch_span
from functions.hub_events import hub_events
from shared.observability.metrics import count, measure
from shared.settings import settings
from shared.telemetry.event_hub_sources import EventHubSource, parse_event_hub_sources
from shared.telemetry.models import TELEMETRY_HUB, HubEvent
from shared.timestamps import now
from shared.wiring import services

blueprint = func.Blueprint()

# The worker reads the batch's type from this very form of annotation.
type _Handler = Callable[[typing.List[func.EventHubEvent], func.Context], Awaitable[None]]  # noqa: UP006  as below


def _register(name: str, source: str, hub: str, consumer_group: str) -> None:
    async def handle(events: typing.List[func.EventHubEvent], context: func.Context) -> None:  # noqa: UP006  see _Handler
        batch = hub_events(events)
        with batch_span(hub, consumer_group, len(batch), context):
            await services().ingest.run(source, batch)
        _tell(batch)

    handle.__name__ = name
    _triggered(handle, name, hub, consumer_group)


def _tell(batch: Sequence[HubEvent]) -> None:
    if batch:
        oldest = min(event.enqueued_at for event in batch)
        measure("workspace.ingest.lag", max(0.0, (now() - oldest).total_seconds()))
        count("workspace.ingest.events", len(batch))


def _triggered(handle: _Handler, name: str, hub: str, consumer_group: str) -> None:
    # Without a retry policy the host moves on after an exception, and the batch would be lost. As text the bodies
    # would be decoded by the host, and what is no UTF-8 with them.
    retried = blueprint.retry(
        strategy="exponential_backoff",
        max_retry_count="-1",
        minimum_interval="00:00:01",
        maximum_interval="00:01:00",
    )(handle)
    triggered = blueprint.event_hub_message_trigger(
        arg_name="events",
        event_hub_name=hub,
        connection="EventHubs",
        consumer_group=consumer_group,
        cardinality=func.Cardinality.MANY,
        data_type=func.DataType.BINARY,
    )(retried)
    blueprint.function_name(name)(triggered)


def _register_source(source: EventHubSource) -> None:
    _register(source.function_name, source.name, source.hub, source.consumer_group)


_register("ingest", TELEMETRY_HUB, TELEMETRY_HUB, "$Default")
for _source in parse_event_hub_sources(settings().event_hub_sources):
    _register_source(_source)
