"""Spans: what a request, a batch of messages and the calls below them took. Nothing is made where nobody is told."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from shared.errors import Kind, WorkspaceError
from shared.observability.exporters import Attribute, Signal, get_tracer, is_enabled

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanContext

ERROR_CODE: Final = "workspace.error_code"
_NOTHING: Final[Mapping[str, Attribute]] = {}
_NO_CONTEXT: Final[Mapping[str, str]] = {}
_OFF: Final[AbstractContextManager[None]] = nullcontext()
_OWN_FAULTS: Final = frozenset({Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.INTERNAL})
"""Kinds that tell of a failure here; the others tell the caller what is wrong with the request."""

ANY: Final = (Exception,)


def span(
    name: str,
    attributes: Mapping[str, Attribute] = _NOTHING,
    *,
    kind: str = "INTERNAL",
    within: Mapping[str, str] = _NO_CONTEXT,
) -> AbstractContextManager[None]:
    """Trace what runs inside, as a child of what runs around it; a failure marks it, a refusal does not.

    Args:
        name: few values; no names of people or equipment.
        attributes: by the OpenTelemetry semantic conventions; no values that callers gave.
        kind: of the span, as ``SpanKind`` calls it.
        within: ``traceparent`` and ``tracestate`` (W3C) of what runs around it elsewhere; empty for what does here.
    """
    if not is_enabled(Signal.TRACES):
        return _OFF
    return _around(name, attributes, kind, ANY, context=extract_context(within) if within.get("traceparent") else None)


def call_span(
    name: str, attributes: Mapping[str, Attribute], failures: tuple[type[Exception], ...] = ANY, *, kind: str = "CLIENT"
) -> AbstractContextManager[None]:
    """Trace a call to something that the process stands on; only below another span, so that no poll makes a trace.

    Args:
        name: see ``span``.
        attributes: see ``span``.
        failures: exceptions that mark it as failed.
        kind: see ``span``.
    """
    if not is_enabled(Signal.TRACES) or current_span_context() is None:
        return _OFF
    return _around(name, attributes, kind, failures)


def batch_span(
    name: str, callers: "Iterable[SpanContext | None]", attributes: Mapping[str, Attribute]
) -> AbstractContextManager[None]:
    """Trace what is done for several callers at once: a trace of its own, with a link to the span of each.

    Args:
        name: see ``span``.
        callers: as ``current_span_context`` gave them; where none of them is traced, this is not either.
        attributes: see ``span``.
    """
    if not is_enabled(Signal.TRACES):
        return _OFF
    traced = [one for one in callers if one is not None and one.trace_flags.sampled]
    if not traced:
        return _OFF
    from opentelemetry.trace import Link  # noqa: PLC0415  loaded where it is used

    return _around(name, attributes, "INTERNAL", ANY, links=[Link(one) for one in traced], context=extract_context({}))


def extract_context(carrier: Mapping[str, str]) -> "Context":
    """Return the context that headers carry (W3C Trace Context), an empty one where they have none that is sound."""
    from opentelemetry.context import Context  # noqa: PLC0415  loaded where it is used
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    given = {name: carrier[name] for name in ("traceparent", "tracestate") if carrier.get(name)}
    return TraceContextTextMapPropagator().extract(given, Context())


def current_span_context() -> "SpanContext | None":
    """Return which span runs, for a batch that it takes part in."""
    if not is_enabled(Signal.TRACES):
        return None
    from opentelemetry.trace import get_current_span  # noqa: PLC0415  loaded where it is used

    context = get_current_span().get_span_context()
    return context if context.is_valid else None


def record_reply(attributes: Mapping[str, Attribute], *, failed: bool) -> None:
    """Tell the span that runs of the reply that came.

    Args:
        attributes: ``db.response.status_code`` and others.
        failed: whether the reply says that the call failed.
    """
    if current_span_context() is None:
        return
    from opentelemetry.trace import get_current_span  # noqa: PLC0415  loaded where it is used

    running = get_current_span()
    for name, value in attributes.items():
        running.set_attribute(name, value)
    if failed:
        mark_failed(running, str(attributes["db.response.status_code"]))


def record_exception(error: BaseException) -> None:
    """Put an exception that nobody foresaw, with its stack trace, to the span that runs."""
    if is_enabled(Signal.TRACES):
        from opentelemetry.trace import get_current_span  # noqa: PLC0415  loaded where it is used

        get_current_span().record_exception(error)


def mark_failed(span: "Span | Any", reason: str) -> None:
    """Say that a span failed, and for which reason: a code, or the name of an exception."""
    from opentelemetry.trace import StatusCode  # noqa: PLC0415  loaded where it is used

    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)


@contextmanager
def _around(
    name: str,
    attributes: Mapping[str, Attribute],
    kind: str,
    failures: tuple[type[Exception], ...],
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
        record_exception=False,  # its text may hold what callers gave; the log has it where it counts
        set_status_on_exception=False,
    ) as made:
        try:
            yield
        except failures as error:
            _mark(made, error)
            raise


def _mark(made: "Span", error: Exception) -> None:
    if not isinstance(error, WorkspaceError):
        mark_failed(made, type(error).__name__)
        return
    made.set_attribute(ERROR_CODE, error.code)
    if error.kind in _OWN_FAULTS:
        mark_failed(made, error.code)
