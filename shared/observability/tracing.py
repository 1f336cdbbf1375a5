"""OpenTelemetry spans of requests, message batches and calls to dependencies; created only if traces are enabled."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from shared.errors import Kind, WorkspaceError
from shared.observability.exporters import Attribute, Signal, get_tracer, is_signal_enabled

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanContext

ERROR_CODE: Final = "workspace.error_code"
_NOTHING: Final[Mapping[str, Attribute]] = {}
_NO_CONTEXT: Final[Mapping[str, str]] = {}
_OFF: Final[AbstractContextManager[None]] = nullcontext()
_SERVER_ERRORS: Final = frozenset({Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.INTERNAL})
"""Kinds of errors that the service or its dependencies cause; the request causes all other kinds."""

ANY: Final = (Exception,)


def open_span(
    name: str,
    attributes: Mapping[str, Attribute] = _NOTHING,
    *,
    kind: str = "INTERNAL",
    parent_trace_headers: Mapping[str, str] = _NO_CONTEXT,
) -> AbstractContextManager[None]:
    """Context manager: trace a block as a child of the current span.

    An exception marks the span as failed, unless it is a WorkspaceError that reports a fault of the request.

    Args:
        name: name of the span, from a small set; without names of people or equipment.
        attributes: attributes by the OpenTelemetry semantic conventions; without values of the request.
        kind: name of a ``SpanKind``.
        parent_trace_headers: ``traceparent`` and ``tracestate`` (W3C) of a parent span in another process; empty for
            the current span.
    """
    if not is_signal_enabled(Signal.TRACES):
        return _OFF
    return _start_span(
        name,
        attributes,
        kind,
        ANY,
        context=extract_trace_context(parent_trace_headers) if parent_trace_headers.get("traceparent") else None,
    )


def open_call_span(
    name: str,
    attributes: Mapping[str, Attribute],
    failure_types: tuple[type[Exception], ...] = ANY,
    *,
    kind: str = "CLIENT",
) -> AbstractContextManager[None]:
    """Context manager: trace a call to a dependency if another span is open; polling without a span creates no traces.

    Args:
        name: see :func:`open_span`.
        attributes: see :func:`open_span`.
        failure_types: exceptions that mark the span as failed.
        kind: see :func:`open_span`.
    """
    if not is_signal_enabled(Signal.TRACES) or find_current_span_context() is None:
        return _OFF
    return _start_span(name, attributes, kind, failure_types)


def open_batch_span(
    name: str, caller_contexts: "Iterable[SpanContext | None]", attributes: Mapping[str, Attribute]
) -> AbstractContextManager[None]:
    """Context manager: trace work for several callers, in a new trace with a link to the span of each caller.

    Args:
        name: see :func:`open_span`.
        caller_contexts: results of ``find_current_span_context`` for the callers; the work is traced only if at least
            one caller is traced.
        attributes: see :func:`open_span`.
    """
    if not is_signal_enabled(Signal.TRACES):
        return _OFF
    traced = [one for one in caller_contexts if one is not None and one.trace_flags.sampled]
    if not traced:
        return _OFF
    from opentelemetry.trace import Link  # noqa: PLC0415  loaded where it is used

    return _start_span(
        name, attributes, "INTERNAL", ANY, links=[Link(one) for one in traced], context=extract_trace_context({})
    )


def extract_trace_context(trace_headers: Mapping[str, str]) -> "Context":
    """Return the trace context in W3C headers (``traceparent``); an empty context if they are missing or invalid."""
    from opentelemetry.context import Context  # noqa: PLC0415  loaded where it is used
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    headers = {name: trace_headers[name] for name in ("traceparent", "tracestate") if trace_headers.get(name)}
    return TraceContextTextMapPropagator().extract(headers, Context())


def find_current_span_context() -> "SpanContext | None":
    """Return the context of the current span; None outside of a span."""
    if not is_signal_enabled(Signal.TRACES):
        return None
    from opentelemetry.trace import get_current_span  # noqa: PLC0415  loaded where it is used

    context = get_current_span().get_span_context()
    return context if context.is_valid else None


def record_dependency_reply_on_span(attributes: Mapping[str, Attribute], *, failed: bool) -> None:
    """Record the reply of a dependency on the current span.

    Args:
        attributes: span attributes about the reply; ``db.response.status_code`` is required.
        failed: True if the reply means that the call failed.
    """
    if find_current_span_context() is None:
        return
    from opentelemetry.trace import get_current_span  # noqa: PLC0415  loaded where it is used

    current = get_current_span()
    for name, value in attributes.items():
        current.set_attribute(name, value)
    if failed:
        mark_span_failed(current, str(attributes["db.response.status_code"]))


def record_exception_on_span(error: BaseException) -> None:
    """Record an unexpected exception with its stack trace on the current span."""
    if is_signal_enabled(Signal.TRACES):
        from opentelemetry.trace import get_current_span  # noqa: PLC0415  loaded where it is used

        get_current_span().record_exception(error)


def mark_span_failed(span: "Span | Any", reason: str) -> None:
    """Mark a span as failed, with an error code or the name of an exception as the reason."""
    from opentelemetry.trace import StatusCode  # noqa: PLC0415  loaded where it is used

    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)


@contextmanager
def _start_span(
    name: str,
    attributes: Mapping[str, Attribute],
    kind: str,
    failure_types: tuple[type[Exception], ...],
    *,
    links: "list[Link] | None" = None,
    context: "Context | None" = None,
) -> Iterator[None]:
    from opentelemetry.trace import SpanKind  # noqa: PLC0415  loaded where it is used

    with get_tracer().start_as_current_span(
        name,
        context,
        SpanKind[kind],
        attributes,
        links,
        record_exception=False,  # its message can contain values of the request
        set_status_on_exception=False,
    ) as created:
        try:
            yield
        except failure_types as error:
            _record_error_on_span(created, error)
            raise


def _record_error_on_span(created: "Span", error: Exception) -> None:
    if not isinstance(error, WorkspaceError):
        mark_span_failed(created, type(error).__name__)
        return
    created.set_attribute(ERROR_CODE, error.code)
    if error.kind in _SERVER_ERRORS:
        mark_span_failed(created, error.code)
