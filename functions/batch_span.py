"""Trace context of function invocations, and trace spans of Event Hub batches."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

import azure.functions as func

from shared.observability.tracing import span


def read_trace_context(context: func.Context) -> Mapping[str, str]:
    """Return the W3C trace context that the host passes to an invocation.

    It is read here, because the worker attaches it only with a setting that makes every cold start slower.
    """
    host_context = context.trace_context
    return {"traceparent": host_context.trace_parent or "", "tracestate": host_context.trace_state or ""}


def trace_batch(hub: str, consumer_group: str, events: int, context: func.Context) -> AbstractContextManager[None]:
    """Trace the processing of an Event Hub batch, as a child of the host's span if it exists.

    Args:
        hub: Event Hub of the batch.
        consumer_group: consumer group of the trigger.
        events: number of events in the batch.
        context: context of the invocation.
    """
    attributes: dict[str, str | int] = {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": hub,
        "messaging.consumer.group.name": consumer_group,
        "messaging.batch.message_count": events,
    }
    return span(f"process {hub}", attributes, kind="CONSUMER", within=read_trace_context(context))
