"""Trace context of function invocations, and trace spans of Event Hub batches."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

import azure.functions as func

from shared.observability.tracing import open_span


def read_trace_context(context: func.Context) -> Mapping[str, str]:
    """Return the W3C trace context that the Functions host passes to an invocation.

    The Functions worker can read this context itself, but only with a setting that makes every cold start slower.
    """
    host_context = context.trace_context
    return {"traceparent": host_context.trace_parent or "", "tracestate": host_context.trace_state or ""}


def trace_batch(hub: str, consumer_group: str, events: int, context: func.Context) -> AbstractContextManager[None]:
    """Return a context manager that records a trace span for the processing of an Event Hub batch.

    The span of the Functions host becomes the parent of this span, if the host passed one.

    Args:
        hub: name of the event hub.
        consumer_group: name of the trigger's consumer group.
        events: number of events in the batch.
        context: context of the function's invocation.
    """
    attributes: dict[str, str | int] = {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": hub,
        "messaging.consumer.group.name": consumer_group,
        "messaging.batch.message_count": events,
    }
    return open_span(f"process {hub}", attributes, kind="CONSUMER", within=read_trace_context(context))
