"""The Event Hub trigger that stores impulses in the archive."""

import typing

import azure.functions as func

from functions.batch_span import batch_span
from functions.hub_events import hub_events
from shared.telemetry.models import IMPULSES_HUB
from shared.wiring import services

blueprint = func.Blueprint()
CONSUMER_GROUP = "archive"


# Without a retry policy the host moves on after an exception, and the batch would be lost.
@blueprint.function_name("archive")
@blueprint.event_hub_message_trigger(
    arg_name="events",
    event_hub_name=IMPULSES_HUB,
    connection="EventHubs",
    consumer_group=CONSUMER_GROUP,
    cardinality=func.Cardinality.MANY,
    data_type=func.DataType.BINARY,
)
@blueprint.retry(
    strategy="exponential_backoff",
    max_retry_count="-1",
    minimum_interval="00:00:01",
    maximum_interval="00:01:00",
)
async def archive(
    events: typing.List[func.EventHubEvent],  # noqa: UP006  the worker reads this very form
    context: func.Context,
) -> None:
    """Keep the impulses of a batch."""
    with batch_span(IMPULSES_HUB, CONSUMER_GROUP, len(events), context):
        await services().archive.run(hub_events(events))
