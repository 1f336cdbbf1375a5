"""Traces and metrics to Azure Monitor, from some seconds after the process began: its exporter takes long to load."""

import threading
from typing import Any

from shared.observability import exporters, logs

DELAY_SECONDS = 5.0
"""By then the requests that waited for this instance are answered; what was traced before is not told."""

_LOG = logs.get_logger("monitor")


def start(connection_string: str, client_id: str = "", delay_seconds: float = DELAY_SECONDS) -> threading.Timer | None:
    """Tell Azure Monitor, in a while and from a thread of its own, what the process traces and counts.

    Args:
        connection_string: of the Application Insights resource; empty for none.
        client_id: of the user-assigned identity; empty where the resource takes data without one.
        delay_seconds: how long nothing is loaded.

    Returns:
        What waits; None where there is nothing to tell to, or where the standard's variables decide: a collector is
            told, or nobody.
    """
    if not connection_string or exporters.is_decided_by_environment():
        return None
    waiting = threading.Timer(delay_seconds, _begin, (connection_string, client_id))
    waiting.daemon = True
    waiting.start()
    return waiting


def _begin(connection_string: str, client_id: str) -> None:
    try:
        _set_providers(_options(connection_string, client_id))
    except Exception as error:  # noqa: BLE001  the service works without
        _LOG.warning("nothing is told to Azure Monitor", extra=logs.fields(error=type(error).__name__))
        return
    exporters.mark_providers_installed()


def _options(connection_string: str, client_id: str) -> dict[str, Any]:
    # The instance's disk is not for what could not be sent.
    options = {"connection_string": connection_string, "disable_offline_storage": True}
    if not client_id:
        return options
    from azure.identity import ManagedIdentityCredential  # noqa: PLC0415  loaded late, see the module

    return options | {"credential": ManagedIdentityCredential(client_id=client_id)}


def _set_providers(options: dict[str, Any]) -> None:
    from azure.monitor.opentelemetry.exporter import (  # noqa: PLC0415  loaded late, see the module
        AzureMonitorMetricExporter,
        AzureMonitorTraceExporter,
    )
    from opentelemetry import metrics, trace  # noqa: PLC0415  loaded late, see the module
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415  loaded late, see the module
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415  see the module
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  loaded late, see the module
    from opentelemetry.sdk.trace import TracerProvider, sampling  # noqa: PLC0415  loaded late, see the module
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  loaded late, see the module

    told_as = Resource.create({"service.name": exporters.SCOPE})
    # Set in code, because the SDK knows none of the sampler names that the Functions host reads from the environment.
    traces = TracerProvider(sampling.ALWAYS_ON, told_as)
    traces.add_span_processor(BatchSpanProcessor(AzureMonitorTraceExporter(**options)))
    trace.set_tracer_provider(traces)
    reader = PeriodicExportingMetricReader(AzureMonitorMetricExporter(**options))
    metrics.set_meter_provider(MeterProvider([reader], told_as))
