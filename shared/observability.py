"""Traces and metrics by OpenTelemetry; without an exporter nothing is loaded and nothing costs anything.

The app speaks the OpenTelemetry API alone. The standard ``OTEL_*`` variables name a collector; in the cloud an adapter
provides for Azure Monitor once the process has begun. Spans are made in ``shared.tracing``.
"""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from shared import logs, otlp
from shared.otlp import Signal

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import Tracer

SCOPE: Final = "industrial-data-workspace"

_LOG = logs.logger("observability")
_provided = threading.Event()

type Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric.

    Attributes:
        kind: what is done with its values; a level goes up and down.
        unit: UCUM.
        description: what is counted or measured.
    """

    kind: Literal["counter", "histogram", "level"]
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
    "workspace.live.clients": Instrument("level", "{client}", "Listeners that are connected to the local host."),
    "workspace.chain.broken": Instrument("counter", "{verification}", "Verifications that found a broken audit chain."),
    "workspace.checkpoint.failures": Instrument("counter", "{checkpoint}", "Checkpoints that could not be made."),
    "workspace.http.errors": Instrument("counter", "{reply}", "Replies with status 429 or 5xx."),
    "workspace.background.failures": Instrument("counter", "{run}", "Runs of background jobs that failed."),
    "workspace.downloads.parts": Instrument("counter", "{part}", "Parts of cold downloads that were converted."),
    "workspace.overload.refusals": Instrument("counter", "{request}", "Requests refused by an instance with too much."),
    "workspace.live.quota_refusals": Instrument("counter", "{client}", "Live streams beyond their principal's quota."),
    "workspace.downloads.quota_refusals": Instrument(
        "counter", "{download}", "Downloads refused or failed beyond their principal's quota."
    ),
    "workspace.rate_limit.refusals": Instrument("counter", "{request}", "Requests beyond their principal's budget."),
}


def count(name: str, amount: int = 1, **attributes: Attribute) -> None:
    """Add to a counter.

    Args:
        name: one of ``INSTRUMENTS``.
        amount: not negative.
        attributes: few values each; never names of people or equipment.
    """
    if enabled(Signal.METRICS):
        _instrument(name).add(amount, attributes)


def change(name: str, amount: int, **attributes: Attribute) -> None:
    """Add to a level, or with a negative amount take from it; arguments as for ``count``."""
    if enabled(Signal.METRICS):
        _instrument(name).add(amount, attributes)


def measure(name: str, value: float, **attributes: Attribute) -> None:
    """Add a value to a histogram; arguments as for ``count``."""
    if enabled(Signal.METRICS):
        _instrument(name).record(value, attributes)


def enabled(signal: Signal) -> bool:
    """Return whether there is somebody to tell."""
    return _provided.is_set() or _told(signal)


def collector_decides() -> bool:
    """Return whether the standard's variables name a collector, or say that nobody is told anything."""
    return otlp.disabled(os.environ) or any(_told(signal) for signal in Signal)


def provided() -> None:
    """Say that the library's providers are set; from now on they are told everything."""
    _provided.set()


@cache
def tracer() -> "Tracer":
    """Return what makes spans, for when traces are told."""
    from opentelemetry import trace  # noqa: PLC0415  loaded where it is used

    if _told(Signal.TRACES):
        _provide_traces()
    return trace.get_tracer(SCOPE)


@cache
def _told(signal: Signal) -> bool:
    for fault in otlp.faults(os.environ):
        _LOG.warning("not told to a collector: %s", fault)
    return otlp.told(signal, os.environ)


def _provide_traces() -> None:
    from opentelemetry import trace  # noqa: PLC0415  loaded where it is used
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=_resource())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def _resource() -> "Resource":
    """Return who tells: as the environment says, else by the service's own name."""
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource  # noqa: PLC0415

    named = SERVICE_NAME in OTELResourceDetector().detect().attributes
    return Resource.create({} if named else {SERVICE_NAME: SCOPE})


@cache
def _meters() -> "Meter":
    from opentelemetry import metrics  # noqa: PLC0415  loaded where it is used

    if _told(Signal.METRICS):
        _provide_metrics()
    return metrics.get_meter(SCOPE)


def _provide_metrics() -> None:
    from opentelemetry import metrics  # noqa: PLC0415  loaded where it is used
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415

    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], _resource()))


@cache
def _instrument(name: str) -> Any:
    """Return the library's instrument of a name."""
    instrument, meters = INSTRUMENTS[name], _meters()
    made = (name, instrument.unit, instrument.description)
    match instrument.kind:
        case "counter":
            return meters.create_counter(*made)
        case "histogram":
            return meters.create_histogram(*made)
        case "level":
            return meters.create_up_down_counter(*made)
