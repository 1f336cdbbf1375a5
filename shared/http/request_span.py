"""The span of an HTTP request, by OpenTelemetry's semantic conventions for HTTP servers."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from shared.http.messages import Reply, Request
from shared.observability.exporters import Attribute, Signal, get_tracer, is_enabled
from shared.observability.tracing import ERROR_CODE, current_span_context, extract_context, mark_failed

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

REQUEST_ID: Final = "workspace.request_id"
"""The id that the request's log lines carry as ``requestId``."""
LONGEST_PATH: Final = 1024
_KNOWN: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"})
_OTHER: Final = "_OTHER"
_NANOSECONDS: Final = 1_000_000_000


class RequestSpan:
    """A request's span, or none.

    Args:
        made: the span, None where nobody is told.
        method: of the request, as the span names it.
    """

    def __init__(self, made: "Span | None", method: str) -> None:
        self._made = made
        self._method = method

    def matched(self, route: str, operation: str) -> None:
        """Tell what answers: the template of a route without its leading slash, and the operation's name."""
        if self._made is not None:
            self._made.update_name(f"{self._method} /{route}")
            self._made.set_attribute("http.route", f"/{route}")
            self._made.set_attribute("workspace.operation", operation)

    def answered(self, reply: Reply) -> None:
        """Tell how the request was answered; only what failed here is marked as failed."""
        if self._made is None:
            return
        self._made.set_attribute("http.response.status_code", reply.status)
        if reply.error_code:
            self._made.set_attribute(ERROR_CODE, reply.error_code)
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            mark_failed(self._made, reply.error_code or str(reply.status))


_OFF: Final[AbstractContextManager[RequestSpan]] = nullcontext(RequestSpan(None, ""))


def request_span(request: Request, request_id: str) -> AbstractContextManager[RequestSpan]:
    """Trace a request: below the span that runs, where another interface asks; else as its host or caller says.

    A host that traces requests itself gives a context other than the caller's; its span is the server's then, and
    this one is within it, so that no request counts twice.

    Args:
        request: what is asked.
        request_id: its id.
    """
    return _around(request, request_id) if is_enabled(Signal.TRACES) else _OFF


def record_rejected_request(request: Request, request_id: str, reply: Reply, seconds: float) -> None:
    """Tell of a request that the host refused by itself.

    Args:
        request: what was asked.
        request_id: its id.
        reply: the refusal.
        seconds: how long ago it began.
    """
    if is_enabled(Signal.TRACES):
        with _around(request, request_id, seconds) as told:
            told.answered(reply)


@contextmanager
def _around(request: Request, request_id: str, seconds: float = 0.0) -> Iterator[RequestSpan]:
    from opentelemetry.trace import SpanKind  # noqa: PLC0415  loaded where it is used

    nested = current_span_context() is not None or _is_within_the_hosts(request)
    method = request.method if request.method in _KNOWN else _OTHER
    name = "HTTP" if method == _OTHER else method
    with get_tracer().start_as_current_span(
        name,
        None if current_span_context() is not None else _context(request),
        SpanKind.INTERNAL if nested else SpanKind.SERVER,
        _attributes(request, method, request_id),
        start_time=time.time_ns() - int(seconds * _NANOSECONDS),
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        yield RequestSpan(made, name)


def _attributes(request: Request, method: str, request_id: str) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {
        "http.request.method": method,
        "url.path": request.path[:LONGEST_PATH],
        REQUEST_ID: request_id,
    }
    return attributes


def _is_within_the_hosts(request: Request) -> bool:
    given = request.trace_context.get("traceparent", "")
    return bool(given) and given != request.headers.get("traceparent", "")


def _context(request: Request) -> "Context":
    return extract_context(request.trace_context if _is_within_the_hosts(request) else request.headers)
