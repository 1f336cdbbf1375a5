"""The spans of requests, as the SDK makes them."""

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
async def thing(_: Call) -> Reply:
    """Answer."""
    return Reply(204)


@GROUP.endpoint("GET", "missing", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def missing(_: Call) -> Reply:
    """Refuse."""
    raise WorkspaceError(Kind.NOT_FOUND, "THING_NOT_FOUND", "There is none.")


@GROUP.endpoint("GET", "away", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def away(_: Call) -> Reply:
    """Fail."""
    raise WorkspaceError(Kind.UNAVAILABLE, "STORE_UNAVAILABLE", "It is away.")


@GROUP.endpoint("GET", "broken", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def broken(_: Call) -> Reply:
    """Fail as nobody foresaw."""
    raise ValueError("why")


@GROUP.endpoint("GET", "outer", access=Access.PUBLIC, unknown=UnknownNames.IGNORE)
async def outer(_: Call) -> Reply:
    """Ask the door again, as another interface does."""
    return await ask("/things/b")


async def authenticate(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Know nobody."""
    raise AssertionError(authorization, accepted)


async def require_feature(feature: str) -> None:
    """Have everything."""
    assert feature


async def ask(
    path: str, method: str = "GET", headers: Mapping[str, str] | None = None, context: Mapping[str, str] | None = None
) -> Reply:
    """Return the door's reply."""
    request = Request(method, path, "secret=1", headers or {}, b"", context or {})
    return await RequestPipeline(GROUP.operations, authenticate, require_feature).serve(request)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Return where spans go."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for module in (tracing, request_span):
        monkeypatch.setattr(module, "get_tracer", lambda: provider.get_tracer("test"))
        monkeypatch.setattr(module, "is_enabled", lambda _: True)
    yield exporter
    provider.shutdown()


def only(made: InMemorySpanExporter) -> ReadableSpan:
    """Return the one span that was made."""
    [span] = made.get_finished_spans()
    return span


async def test_what_a_request_is_told_by(made: InMemorySpanExporter) -> None:
    """A request's span has the conventions' attributes and its id, the query and the caller not."""
    reply = await ask("/things/a", headers={"x-request-id": "mine", "authorization": "Bearer x"})
    span = only(made)
    assert (span.name, span.kind, span.status.status_code) == ("GET /things/{name}", SpanKind.SERVER, StatusCode.UNSET)
    assert span.attributes == {
        "http.request.method": "GET",
        "http.route": "/things/{name}",
        "http.response.status_code": 204,
        "url.path": "/things/a",
        "workspace.operation": "thing",
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
async def test_only_what_failed_here_is_marked(
    made: InMemorySpanExporter,
    *,
    method: str,
    path: str,
    name: str,
    status: int,
    code: str,
    failed: bool,
    stack: bool,
) -> None:
    """A refusal has its status and code; an error is what is 5xx, a stack trace has what nobody foresaw."""
    await ask(path, method)
    span = only(made)
    told = dict(span.attributes or {})
    assert (span.name, told["http.response.status_code"], told["workspace.error_code"]) == (name, status, code)
    assert (span.status.status_code is StatusCode.ERROR, told.get("error.type")) == (failed, code if failed else None)
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
async def test_a_trace_goes_on(
    made: InMemorySpanExporter, headers: Mapping[str, str], context: Mapping[str, str], parent: str | None, kind: object
) -> None:
    """A caller's trace goes on; where the host makes the request's span, this one is within that."""
    await ask("/things/a", headers=headers, context=context)
    span = only(made)
    assert (span.parent and f"{span.parent.span_id:016x}", span.kind) == (parent, kind)
    if parent is not None:
        assert f"{span.context.trace_id:032x}" == TRACE


async def test_a_trace_that_is_not_recorded_stays_so(made: InMemorySpanExporter) -> None:
    """Where the caller says that its trace is not recorded, nothing is made."""
    await ask("/things/a", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert not made.get_finished_spans()


async def test_a_request_within_a_request(made: InMemorySpanExporter) -> None:
    """What another interface asks for its caller is below that caller's request, and no server's span."""
    await ask("/outer", headers={"traceparent": CALLERS})
    inner, around = made.get_finished_spans()
    assert inner.parent is not None
    assert (inner.kind, inner.parent.span_id) == (SpanKind.INTERNAL, around.context.span_id)


async def test_a_long_path_is_cut(made: InMemorySpanExporter) -> None:
    """A path is told as far as it is of use."""
    await ask(f"/{'a' * 5000}")
    assert len(str((only(made).attributes or {})["url.path"])) == request_span.LONGEST_PATH


def test_nobody_is_told_by_default() -> None:
    """Without an exporter a request's span is the same nothing each time."""
    request = Request("GET", "/", "", {}, b"")
    assert not exporters.is_enabled(Signal.TRACES)
    assert request_span.request_span(request, "x") is request_span.request_span(request, "y")
