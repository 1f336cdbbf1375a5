"""The span of a batch of hub events that a trigger works on."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

import azure.functions as func

from shared.observability.tracing import span


def trace_context(context: func.Context) -> Mapping[str, str]:
    """Return the trace context (W3C) that the host gives an invocation.

    Of itself the worker attaches it to nothing: that takes a setting, which costs every cold start.
    """
    given = context.trace_context
    return {"traceparent": given.trace_parent or "", "tracestate": given.trace_state or ""}


def batch_span(hub: str, consumer_group: str, events: int, context: func.Context) -> AbstractContextManager[None]:
    """Trace the work on a batch, within the invocation where the host traces it.

    Args:
        hub: that the events come from.
        consumer_group: of the trigger.
        events: how many.
        context: of the invocation.
    """
    told: dict[str, str | int] = {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": hub,
        "messaging.consumer.group.name": consumer_group,
        "messaging.batch.message_count": events,
    }
    return span(f"process {hub}", told, kind="CONSUMER", within=trace_context(context))
