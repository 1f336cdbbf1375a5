"""Tests of spans of blocks, calls and batches, with the OpenTelemetry SDK."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

from shared.errors import Kind, WorkspaceError
from shared.observability import tracing

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Return the exporter that collects the spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "get_tracer", lambda: provider.get_tracer("test"))
    monkeypatch.setattr(tracing, "is_signal_enabled", lambda _: True)
    yield exporter
    provider.shutdown()


def _get_spans(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def _read_failure(exporter: InMemorySpanExporter, error: Exception, *failures: type[Exception]) -> tuple[object, bool]:
    """Raise the exception in a span; return the span's error code or type, and whether the span is marked as failed."""
    with (
        pytest.raises(type(error)),
        tracing.open_span("outer"),
        tracing.open_call_span("call", {}, failures or tracing.ANY),
    ):
        raise error
    span = _get_spans(exporter)["call"]
    attributes = span.attributes or {}
    code = attributes.get(tracing.ERROR_CODE, attributes.get("error.type"))
    return code, span.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize(
    ("kind", "failed"),
    [(Kind.NOT_FOUND, False), (Kind.UNAVAILABLE, True), (Kind.TIMEOUT, True), (Kind.INTERNAL, True)],
)
def test_only_errors_of_the_service_fail_a_span(exporter: InMemorySpanExporter, kind: Kind, *, failed: bool) -> None:
    """If the caller's request is the cause of an error, the span has the error code but is not marked as failed."""
    assert _read_failure(exporter, WorkspaceError(kind, "THE_CODE", "A reason.")) == ("THE_CODE", failed)


def test_unexpected_exceptions_set_their_type_but_not_their_message(exporter: InMemorySpanExporter) -> None:
    """An unexpected exception sets the span's error type; its message, which can contain values, is left out."""
    assert _read_failure(exporter, ValueError("secret")) == ("ValueError", True)
    for span in exporter.get_finished_spans():
        assert "secret" not in span.to_json()


def test_only_declared_exceptions_mark_a_traced_call_as_failed(exporter: InMemorySpanExporter) -> None:
    """Only exceptions that the caller declares as failures mark a call as failed."""
    assert _read_failure(exporter, KeyError("x"), ValueError) == (None, False)


def test_a_call_outside_of_a_span_is_not_traced(exporter: InMemorySpanExporter) -> None:
    """A call is traced as a child of the current span, and not traced without one."""
    with tracing.open_call_span("poll", {}):
        pass
    with tracing.open_span("outer"), tracing.open_call_span("call", {"db.system.name": "x"}):
        pass
    spans = _get_spans(exporter)
    assert set(spans) == {"outer", "call"}
    assert spans["call"].parent == spans["outer"].context
    assert (spans["call"].kind, spans["outer"].kind) == (SpanKind.CLIENT, SpanKind.INTERNAL)


def test_the_span_of_a_batch_links_to_its_callers(exporter: InMemorySpanExporter) -> None:
    """A batch for several callers is a new trace with links to traced callers; without any, it is not traced."""
    callers: list[SpanContext | None] = [None]
    with tracing.open_span("caller"):
        callers.append(tracing.find_current_span_context())
        with tracing.open_batch_span("batch", callers, {}):
            pass
    with tracing.open_batch_span("unwatched", [None], {}):
        pass
    spans = _get_spans(exporter)
    assert set(spans) == {"caller", "batch"}
    assert [link.context for link in spans["batch"].links] == [spans["caller"].context]
    assert spans["batch"].parent is None


def test_a_span_continues_the_trace_of_another_process(exporter: InMemorySpanExporter) -> None:
    """A valid W3C parent is the parent of the span; with an invalid one, a new trace begins."""
    with tracing.open_span("child", parent_trace_headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}):
        pass
    with tracing.open_span("orphan", parent_trace_headers={"traceparent": "00-nonsense"}):
        pass
    spans = _get_spans(exporter)
    parent = spans["child"].parent
    assert parent is not None
    assert (f"{parent.trace_id:032x}", f"{parent.span_id:016x}") == (TRACE, PARENT)
    assert spans["orphan"].parent is None


def test_statuses_of_replies_are_recorded_on_the_current_span(exporter: InMemorySpanExporter) -> None:
    """The status of a dependency's reply is recorded on the current span, with the error type if the call failed."""
    tracing.record_dependency_reply_on_span({"db.response.status_code": "500"}, failed=True)
    for name, failed in (("good", False), ("bad", True)):
        with tracing.open_span(name):
            tracing.record_dependency_reply_on_span({"db.response.status_code": "404"}, failed=failed)
    spans = _get_spans(exporter)
    assert dict(spans["good"].attributes or {}) == {"db.response.status_code": "404"}
    assert dict(spans["bad"].attributes or {}) == {"db.response.status_code": "404", "error.type": "404"}
    assert spans["bad"].status.status_code is StatusCode.ERROR


def test_an_exception_is_recorded_with_its_stack_trace(exporter: InMemorySpanExporter) -> None:
    """An unexpected exception can be recorded as an event with its stack trace."""
    with tracing.open_span("outer"):
        tracing.record_exception_on_span(ValueError("why"))
    [event] = _get_spans(exporter)["outer"].events
    assert (event.attributes or {})["exception.type"] == "ValueError"


def test_nothing_is_traced_while_traces_are_disabled(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an exporter, all functions share one span that does nothing."""
    monkeypatch.setattr(tracing, "is_signal_enabled", lambda _: False)
    assert tracing.open_span("a") is tracing.open_call_span("b", {}) is tracing.open_batch_span("c", [], {})
    with tracing.open_span("a"):
        assert tracing.find_current_span_context() is None
    assert exporter.get_finished_spans() == ()
