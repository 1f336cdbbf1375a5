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


def open_event_batch_span(
    hub_name: str, consumer_group: str, event_count: int, context: func.Context
) -> AbstractContextManager[None]:
    """Return a context manager that records a trace span for the processing of an Event Hub batch.

    If the host passed the trace context of its own span, that span becomes the parent.

    Args:
        hub_name: name of the event hub.
        consumer_group: name of the trigger's consumer group.
        event_count: number of events in the batch.
        context: context of the function's invocation.
    """
    attributes: dict[str, str | int] = {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": hub_name,
        "messaging.consumer.group.name": consumer_group,
        "messaging.batch.message_count": event_count,
    }
    return open_span(
        f"process {hub_name}", attributes, kind="CONSUMER", parent_trace_headers=read_trace_context(context)
    )
