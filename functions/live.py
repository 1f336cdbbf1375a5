"""The Event Hub trigger that publishes impulses to the live stream."""

import typing

import azure.functions as func

from functions.batch_span import batch_span
from functions.hub_events import hub_events
from shared.observability.metrics import count
from shared.observability.tracing import span
from shared.telemetry.models import IMPULSES_HUB
from shared.wiring import services

blueprint = func.Blueprint()
CONSUMER_GROUP = "live"


# What cannot be handed on soon is worth nothing later: after five attempts the next batch is taken.
@blueprint.function_name("live")
@blueprint.event_hub_message_trigger(
    arg_name="events",
    event_hub_name=IMPULSES_HUB,
    connection="EventHubs",
    consumer_group=CONSUMER_GROUP,
    cardinality=func.Cardinality.MANY,
    data_type=func.DataType.BINARY,
)
@blueprint.retry(
    strategy="exponential_backoff", max_retry_count="5", minimum_interval="00:00:01", maximum_interval="00:00:20"
)
async def live(
    events: typing.List[func.EventHubEvent],  # noqa: UP006  the worker reads this very form
    context: func.Context,
) -> None:
    """Hand a batch of impulses to those who listen."""
    if services().settings.web_pubsub_endpoint:
        batch = hub_events(events)
        with batch_span(IMPULSES_HUB, CONSUMER_GROUP, len(batch), context), span("publish to the live stream"):
            await services().live_publisher.run(batch)
        count("workspace.live.published", len(batch))
