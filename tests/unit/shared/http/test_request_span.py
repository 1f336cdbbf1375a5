"""Tests of the trace spans of requests with the OpenTelemetry SDK."""

from collections.abc import Iterator, Mapping

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from shared.auth.principals import CredentialKind, Principal
from shared.errors import Kind, WorkspaceError
from shared.http import request_span
from shared.http.messages import Reply, Request
from shared.http.operations import Access, Call, Group
from shared.http.pipeline import RequestPipeline
from shared.http.unknown_names import UnknownNames
from shared.observability import exporters, tracing
from shared.observability.exporters import Signal

GROUP = Group("test")
TRACE, PARENT, HOSTS = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
CALLERS = f"00-{TRACE}-{PARENT}-01"


@GROUP.endpoint("GET", "things/{name}", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def get_thing(_: Call) -> Reply:
    """Return an empty reply."""
    return Reply(204)


@GROUP.endpoint("GET", "missing", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def raise_not_found(_: Call) -> Reply:
    """Raise NOT_FOUND."""
    raise WorkspaceError(Kind.NOT_FOUND, "THING_NOT_FOUND", "There is none.")


@GROUP.endpoint("GET", "away", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def raise_unavailable(_: Call) -> Reply:
    """Raise UNAVAILABLE."""
    raise WorkspaceError(Kind.UNAVAILABLE, "STORE_UNAVAILABLE", "It is away.")


@GROUP.endpoint("GET", "broken", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def raise_unexpected_error(_: Call) -> Reply:
    """Raise an unexpected exception."""
    raise ValueError("why")


@GROUP.endpoint("GET", "outer", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def send_nested_request(_: Call) -> Reply:
    """Send a nested request, as another interface does."""
    return await send_request("/things/b")


async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Accept every caller."""
    raise AssertionError(authorization, accepted)


async def require_feature(feature: str) -> None:
    """Accept every feature."""
    assert feature


async def send_request(
    path: str, method: str = "GET", headers: Mapping[str, str] | None = None, context: Mapping[str, str] | None = None
) -> Reply:
    """Send a request and return the reply."""
    request = Request(method, path, "secret=1", headers or {}, b"", context or {})
    return await RequestPipeline(GROUP.operations, authenticate, require_feature).serve(request)


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Return the exporter that collects the spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for module in (tracing, request_span):
        monkeypatch.setattr(module, "get_tracer", lambda: provider.get_tracer("test"))
        monkeypatch.setattr(module, "is_signal_enabled", lambda _: True)
    yield exporter
    provider.shutdown()


def get_only_span(exporter: InMemorySpanExporter) -> ReadableSpan:
    """Return the only span."""
    [span] = exporter.get_finished_spans()
    return span


async def test_a_request_span_has_the_conventional_attributes(exporter: InMemorySpanExporter) -> None:
    """A span has the standard attributes and the request id, but not the query string or the caller."""
    reply = await send_request("/things/a", headers={"x-request-id": "mine", "authorization": "Bearer x"})
    span = get_only_span(exporter)
    assert (span.name, span.kind, span.status.status_code) == ("GET /things/{name}", SpanKind.SERVER, StatusCode.UNSET)
    assert span.attributes == {
        "http.request.method": "GET",
        "http.route": "/things/{name}",
        "http.response.status_code": 204,
        "url.path": "/things/a",
        "workspace.operation": "get_thing",
        "workspace.request_id": reply.headers["x-request-id"],
    }


@pytest.mark.parametrize(
    ("method", "path", "name", "status", "code", "failed", "stack"),
    [
        ("GET", "/missing", "GET /missing", 404, "THING_NOT_FOUND", False, False),
        ("GET", "/nowhere", "GET", 404, "ROUTE_NOT_FOUND", False, False),
        ("POST", "/missing", "POST", 405, "METHOD_NOT_ALLOWED", False, False),
        ("BREW", "/missing", "HTTP", 405, "METHOD_NOT_ALLOWED", False, False),
        ("GET", "/away", "GET /away", 503, "STORE_UNAVAILABLE", True, False),
        ("GET", "/broken", "GET /broken", 500, "INTERNAL_ERROR", True, True),
    ],
)
async def test_only_server_errors_mark_the_span_as_failed(
    exporter: InMemorySpanExporter,
    *,
    method: str,
    path: str,
    name: str,
    status: int,
    code: str,
    failed: bool,
    stack: bool,
) -> None:
    """Only a 5xx reply marks a span as failed; an unexpected exception adds a stack trace."""
    await send_request(path, method)
    span = get_only_span(exporter)
    attributes = dict(span.attributes or {})
    reply = (attributes["http.response.status_code"], attributes["workspace.error_code"])
    assert (span.name, *reply) == (
        name,
        status,
        code,
    )
    assert (span.status.status_code is StatusCode.ERROR, attributes.get("error.type")) == (
        failed,
        code if failed else None,
    )
    assert [event.name for event in span.events] == (["exception"] if stack else [])


@pytest.mark.parametrize(
    ("headers", "context", "parent", "kind"),
    [
        ({}, {}, None, SpanKind.SERVER),
        ({"traceparent": "junk"}, {}, None, SpanKind.SERVER),
        ({"traceparent": CALLERS}, {}, PARENT, SpanKind.SERVER),
        ({"traceparent": CALLERS}, {"traceparent": CALLERS, "tracestate": ""}, PARENT, SpanKind.SERVER),
        ({"traceparent": CALLERS}, {"traceparent": f"00-{TRACE}-{HOSTS}-01"}, HOSTS, SpanKind.INTERNAL),
        ({}, {"traceparent": f"00-{TRACE}-{HOSTS}-01", "tracestate": "a=b"}, HOSTS, SpanKind.INTERNAL),
    ],
)
async def test_a_span_continues_the_trace_of_the_caller(
    exporter: InMemorySpanExporter,
    headers: Mapping[str, str],
    context: Mapping[str, str],
    parent: str | None,
    kind: object,
) -> None:
    """The span of a request is a child of the caller's span, or of the host's span if the host traces."""
    await send_request("/things/a", headers=headers, context=context)
    span = get_only_span(exporter)
    assert (span.parent and f"{span.parent.span_id:016x}", span.kind) == (parent, kind)
    if parent is not None:
        assert f"{span.context.trace_id:032x}" == TRACE


async def test_an_unsampled_trace_creates_no_span(exporter: InMemorySpanExporter) -> None:
    """If the caller's trace is not recorded, no span is created."""
    await send_request("/things/a", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert not exporter.get_finished_spans()


async def test_a_nested_request_has_an_internal_span(exporter: InMemorySpanExporter) -> None:
    """A nested request has an internal span, which is a child of the outer request's span."""
    await send_request("/outer", headers={"traceparent": CALLERS})
    inner, around = exporter.get_finished_spans()
    assert inner.parent is not None
    assert (inner.kind, inner.parent.span_id) == (SpanKind.INTERNAL, around.context.span_id)


async def test_a_long_path_is_shortened_in_the_span(exporter: InMemorySpanExporter) -> None:
    """A long path is cut to a maximum length in the span."""
    await send_request(f"/{'a' * 5000}")
    assert len(str((get_only_span(exporter).attributes or {})["url.path"])) == request_span.LONGEST_PATH


def test_no_span_is_created_without_an_exporter() -> None:
    """Without an exporter, all requests share one span that does nothing."""
    request = Request("GET", "/", "", {}, b"")
    assert not exporters.is_signal_enabled(Signal.TRACES)
    assert request_span.open_request_span(request, "x") is request_span.open_request_span(request, "y")
