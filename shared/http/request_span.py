"""Trace span of an HTTP request, by OpenTelemetry's semantic conventions for HTTP servers."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from shared.http.messages import Reply, Request
from shared.observability.exporters import Attribute, Signal, get_tracer, is_signal_enabled
from shared.observability.tracing import ERROR_CODE, extract_trace_context, find_current_span_context, mark_span_failed

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

REQUEST_ID: Final = "workspace.request_id"
"""Name of the trace attribute that contains the request id; the log contains this id as ``requestId``."""
LONGEST_PATH: Final = 1024
"""Maximum number of characters of the path in a span; the rest is cut off."""
_KNOWN_METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}
)
_OTHER: Final = "_OTHER"
_NANOSECONDS: Final = 1_000_000_000


class RequestSpan:
    """Trace span of a request; its methods do nothing if traces are disabled.

    Args:
        span: OpenTelemetry span of the request; None if traces are disabled.
        method: HTTP method of the request, for the name of the span.
    """

    def __init__(self, span: "Span | None", method: str) -> None:
        self._span = span
        self._method = method

    def set_operation(self, route: str, operation_name: str) -> None:
        """Set the route template (without leading slash) and the name of the operation."""
        if self._span is not None:
            self._span.update_name(f"{self._method} /{route}")
            self._span.set_attribute("http.route", f"/{route}")
            self._span.set_attribute("workspace.operation", operation_name)

    def set_reply(self, reply: Reply) -> None:
        """Set the status and error code of the reply; only server errors mark the span as failed."""
        if self._span is None:
            return
        self._span.set_attribute("http.response.status_code", reply.status)
        if reply.error_code:
            self._span.set_attribute(ERROR_CODE, reply.error_code)
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            mark_span_failed(self._span, reply.error_code or str(reply.status))


_OFF: Final[AbstractContextManager[RequestSpan]] = nullcontext(RequestSpan(None, ""))


def open_request_span(request: Request, request_id: str) -> AbstractContextManager[RequestSpan]:
    """Return a context manager that traces the processing of a request in a span, and yields the span.

    The parent is the current span, else the span of the Functions host, else the span of the caller.

    If the host traces requests itself, its trace context differs from the caller's. The host's span is then the server
    span, and the new span is an internal span below it, so that each request has only one server span.
    """
    return _start_span(request, request_id) if is_signal_enabled(Signal.TRACES) else _OFF


def record_rejected_request(request: Request, request_id: str, reply: Reply, seconds_since_start: float) -> None:
    """Record a trace span for a request that the local host rejected before the pipeline could process it.

    Args:
        request: rejected request.
        request_id: id of the request.
        reply: error reply to the request.
        seconds_since_start: seconds since the request began.
    """
    if is_signal_enabled(Signal.TRACES):
        with _start_span(request, request_id, seconds_since_start) as span:
            span.set_reply(reply)


@contextmanager
def _start_span(request: Request, request_id: str, seconds_since_start: float = 0.0) -> Iterator[RequestSpan]:
    from opentelemetry.trace import SpanKind  # noqa: PLC0415  loaded where it is used

    nested = find_current_span_context() is not None or _is_traced_by_host(request)
    method = request.method if request.method in _KNOWN_METHODS else _OTHER
    name = "HTTP" if method == _OTHER else method
    with get_tracer().start_as_current_span(
        name,
        None if find_current_span_context() is not None else _extract_parent_context(request),
        SpanKind.INTERNAL if nested else SpanKind.SERVER,
        _build_span_attributes(request, method, request_id),
        start_time=time.time_ns() - int(seconds_since_start * _NANOSECONDS),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield RequestSpan(span, name)


def _build_span_attributes(request: Request, method: str, request_id: str) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {
        "http.request.method": method,
        "url.path": request.path[:LONGEST_PATH],
        REQUEST_ID: request_id,
    }
    return attributes


def _is_traced_by_host(request: Request) -> bool:
    """Return whether the Functions host traces the request in a span of its own."""
    host_parent = request.trace_context.get("traceparent", "")
    return bool(host_parent) and host_parent != request.headers.get("traceparent", "")


def _extract_parent_context(request: Request) -> "Context":
    return extract_trace_context(request.trace_context if _is_traced_by_host(request) else request.headers)
