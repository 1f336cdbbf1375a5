"""Tests of the trace spans of Event Hub batches."""

from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from functions import batch_span

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def _build_host_context(trace_parent: str | None, trace_state: str | None) -> Any:
    return SimpleNamespace(trace_context=SimpleNamespace(trace_parent=trace_parent, trace_state=trace_state))


@pytest.mark.parametrize(
    ("parent", "state", "expected"),
    [
        (PARENT, "a=b", {"traceparent": PARENT, "tracestate": "a=b"}),
        (None, None, {"traceparent": "", "tracestate": ""}),
    ],
)
def test_the_trace_context_of_the_host_is_read(
    parent: str | None, state: str | None, expected: Mapping[str, str]
) -> None:
    """The trace context of a batch is read from the host's context; missing values are read as empty texts."""
    assert batch_span.read_trace_context(_build_host_context(parent, state)) == expected


def test_the_span_of_a_batch_continues_the_trace_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """The span of a batch has the hub, the consumer group and the number of events, and continues the host's trace."""
    created: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def process_batch(*arguments: Any, **options: Any) -> nullcontext[None]:
        created.append((arguments, options))
        return nullcontext()

    monkeypatch.setattr(batch_span, "open_span", process_batch)
    with batch_span.open_event_batch_span("telemetry", "warm", 7, _build_host_context(PARENT, "")):
        pass
    [((name, attributes), options)] = created
    assert name == "process telemetry"
    assert attributes == {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "telemetry",
        "messaging.consumer.group.name": "warm",
        "messaging.batch.message_count": 7,
    }
    assert options == {"kind": "CONSUMER", "parent_trace_headers": {"traceparent": PARENT, "tracestate": ""}}
