"""OpenTelemetry exporters of traces and metrics, which the standard ``OTEL_*`` variables select.

The app uses only the OpenTelemetry API. The variables name an OTLP collector. On Azure, an adapter installs the
providers of Azure Monitor after the start. Without a collector and without providers, no OpenTelemetry package is
imported.

Source: OpenTelemetry, Environment Variable Specification and OTLP Exporter Configuration. An empty value counts as
missing. All other ``OTEL_*`` variables are read by the OpenTelemetry SDK.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

from shared.observability import logs

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import Tracer

SCOPE: Final = "industrial-data-workspace"
PROTOCOL: Final = "http/protobuf"
_NONE, _OTLP = "none", "otlp"
_EXPORTERS: Final = frozenset({"", _NONE, _OTLP})

_LOG = logs.get_logger("observability")
_providers_installed = threading.Event()

type Attribute = str | int | float | bool


class Signal(StrEnum):
    """Kind of OpenTelemetry data (traces or metrics), spelled as in the names of the environment variables."""

    TRACES = "TRACES"
    METRICS = "METRICS"


def is_signal_enabled(signal: Signal) -> bool:
    """Return whether the process exports a signal (traces or metrics) to a collector or through installed providers."""
    return _providers_installed.is_set() or _is_signal_sent_to_collector(signal)


def is_telemetry_configured_by_environment() -> bool:
    """Return whether ``OTEL_*`` variables of the process select a collector, or disable traces and metrics."""
    return is_sdk_disabled(os.environ) or any(_is_signal_sent_to_collector(signal) for signal in Signal)


def mark_providers_installed() -> None:
    """Enable traces and metrics, after an adapter has installed its own OpenTelemetry providers."""
    _providers_installed.set()


def is_sdk_disabled(environment: Mapping[str, str]) -> bool:
    """Return whether ``OTEL_SDK_DISABLED`` disables traces and metrics."""
    return _read_variable(environment, "OTEL_SDK_DISABLED").lower() == "true"


def is_collector_selected(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Return whether the environment selects a collector for a signal (traces or metrics).

    A collector is selected by the endpoint of the signal, by the general endpoint, or by the exporter ``otlp``, whose
    default endpoint the standard defines. The result is False if the exporter is ``none``, or if the exporter or its
    protocol is not supported.
    """
    return _is_export_requested(signal, environment) and not list(
        _iterate_unsupported_value_messages(signal, environment)
    )


def describe_unsupported_otel_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a message for each ``OTEL_*`` variable that selects an unsupported exporter or protocol.

    The signal (traces or metrics) of such a variable is not exported.
    """
    return list(
        dict.fromkeys(
            message for signal in Signal for message in _iterate_unsupported_value_messages(signal, environment)
        )
    )


@cache
def get_tracer() -> "Tracer":
    """Return the tracer that creates spans; call this function only if traces are enabled."""
    from opentelemetry import trace  # noqa: PLC0415  loaded where it is used

    if _is_signal_sent_to_collector(Signal.TRACES):
        _install_trace_provider()
    return trace.get_tracer(SCOPE)


@cache
def get_meter() -> "Meter":
    """Return the meter that creates instruments; call this function only if metrics are enabled."""
    from opentelemetry import metrics  # noqa: PLC0415  loaded where it is used

    if _is_signal_sent_to_collector(Signal.METRICS):
        _install_meter_provider()
    return metrics.get_meter(SCOPE)


@cache
def _is_signal_sent_to_collector(signal: Signal) -> bool:
    for message in describe_unsupported_otel_variables(os.environ):
        _LOG.warning("telemetry is not exported: %s", message)
    return is_collector_selected(signal, os.environ)


def _is_export_requested(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Return whether the environment selects an exporter or an endpoint for a signal, even an unsupported one."""
    exporter = _read_exporter_name(signal, environment)
    if is_sdk_disabled(environment) or exporter == _NONE:
        return False
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return bool(exporter) or any(_read_variable(environment, name) for name in endpoints)


def _iterate_unsupported_value_messages(signal: Signal, environment: Mapping[str, str]) -> Iterator[str]:
    if not _is_export_requested(signal, environment):
        return
    exporter = _read_exporter_name(signal, environment)
    if exporter not in _EXPORTERS:
        yield f"OTEL_{signal}_EXPORTER={exporter} is not supported; use otlp or none"
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = _read_variable(environment, name)
        if protocol and protocol != PROTOCOL:
            yield f"{name}={protocol} is not supported; use {PROTOCOL}"
        if protocol:
            return  # the variable of the signal overrides the general one


def _read_exporter_name(signal: Signal, environment: Mapping[str, str]) -> str:
    return _read_variable(environment, f"OTEL_{signal}_EXPORTER").lower()


def _read_variable(environment: Mapping[str, str], variable_name: str) -> str:
    return environment.get(variable_name, "").strip()


def _install_trace_provider() -> None:
    from opentelemetry import trace  # noqa: PLC0415  loaded where it is used
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=_build_otel_resource())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def _install_meter_provider() -> None:
    from opentelemetry import metrics  # noqa: PLC0415  loaded where it is used
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415

    metrics.set_meter_provider(
        MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], _build_otel_resource())
    )


def _build_otel_resource() -> "Resource":
    """Build the OpenTelemetry resource that identifies the service; its default service name is :data:`SCOPE`."""
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource  # noqa: PLC0415

    is_named = SERVICE_NAME in OTELResourceDetector().detect().attributes
    return Resource.create({} if is_named else {SERVICE_NAME: SCOPE})
