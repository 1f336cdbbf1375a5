"""Traces and metrics by OpenTelemetry; without an exporter nothing is loaded and nothing costs anything.

The app speaks the OpenTelemetry API alone. The standard ``OTEL_*`` variables name a collector; in the cloud an adapter
provides for Azure Monitor once the process has begun.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, Meter
    from opentelemetry.trace import Tracer

SCOPE: Final = "industrial-data-workspace"
SWITCHES: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
"""Any of these turns the exporters on."""

_provided = threading.Event()

type Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric.

    Attributes:
        kind: what is done with its values.
        unit: UCUM.
        description: what is counted or measured.
    """

    kind: Literal["counter", "histogram"]
    unit: str
    description: str


INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    "workspace.chain.appends": Instrument("counter", "{record}", "Records appended to audit chains."),
    "workspace.chain.batch_size": Instrument("histogram", "{record}", "Records that one commit held."),
    "workspace.chain.conflicts": Instrument("counter", "{batch}", "Batches that another instance was ahead of."),
    "workspace.chain.verify.duration": Instrument("histogram", "s", "Time of a whole verification."),
    "workspace.query.duration": Instrument("histogram", "s", "Time of a query, as its caller waits for it."),
    "workspace.ingest.events": Instrument("counter", "{event}", "Hub events that became impulses."),
    "workspace.ingest.lag": Instrument("histogram", "s", "Age of the oldest event of a batch when it was taken."),
    "workspace.live.published": Instrument("counter", "{message}", "Impulses handed to the live stream."),
    "workspace.live.admitted": Instrument("counter", "{client}", "Listeners that were let in."),
    "workspace.downloads.parts": Instrument("counter", "{part}", "Parts of cold downloads that were converted."),
    "workspace.overload.refusals": Instrument("counter", "{request}", "Requests refused by an instance with too much."),
    "workspace.rate_limit.refusals": Instrument("counter", "{request}", "Requests beyond their principal's budget."),
}


def count(name: str, amount: int = 1, **attributes: Attribute) -> None:
    """Add to a counter.

    Args:
        name: one of ``INSTRUMENTS``.
        amount: not negative.
        attributes: few values each; never names of people or equipment.
    """
    if enabled():
        _counter(name).add(amount, attributes)


def measure(name: str, value: float, **attributes: Attribute) -> None:
    """Add a value to a histogram; arguments as for ``count``."""
    if enabled():
        _histogram(name).record(value, attributes)


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[None]:
    """Trace what runs inside, as a child of what runs around it; an exception marks it failed."""
    if not enabled():
        yield
        return
    with _tracer().start_as_current_span(name, attributes=attributes):
        yield


def enabled() -> bool:
    """Return whether there is somebody to tell."""
    return _provided.is_set() or collector_named()


@cache
def collector_named() -> bool:
    """Return whether the environment names a collector."""
    return any(os.environ.get(name) for name in SWITCHES)


def provided() -> None:
    """Say that the library's providers are set; from now on they are told everything."""
    _provided.set()


@cache
def _tracer() -> "Tracer":
    from opentelemetry import trace  # noqa: PLC0415  loaded where it is used

    if collector_named():
        _provide_traces()
    return trace.get_tracer(SCOPE)


def _provide_traces() -> None:
    from opentelemetry import trace  # noqa: PLC0415  loaded where it is used
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


@cache
def _meters() -> "Meter":
    from opentelemetry import metrics  # noqa: PLC0415  loaded where it is used

    if collector_named():
        _provide_metrics()
    return metrics.get_meter(SCOPE)


def _provide_metrics() -> None:
    from opentelemetry import metrics  # noqa: PLC0415  loaded where it is used
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415

    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())]))


@cache
def _counter(name: str) -> "Counter":
    instrument = INSTRUMENTS[name]
    return _meters().create_counter(name, instrument.unit, instrument.description)


@cache
def _histogram(name: str) -> "Histogram":
    instrument = INSTRUMENTS[name]
    return _meters().create_histogram(name, instrument.unit, instrument.description)
