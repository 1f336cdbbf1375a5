"""Export of traces and metrics to Azure Monitor; it starts after a delay, because its libraries load slowly."""

import threading
from typing import Any

from shared.observability import exporters, logs

DELAY_SECONDS = 5.0
"""Delay in seconds, in which a new instance replies to the requests that waited for it; their traces are lost."""

_LOG = logs.get_logger("monitor")


def start_export_if_configured(
    connection_string: str, client_id: str = "", delay_seconds: float = DELAY_SECONDS
) -> threading.Timer | None:
    """Start the export to Azure Monitor after a delay, in a thread.

    Args:
        connection_string: connection string of the Application Insights resource; empty for no export.
        client_id: client id of the user-assigned identity; empty if the resource accepts data without sign-in.
        delay_seconds: delay in seconds before the exporter is loaded.

    Returns:
        The timer; None without a connection string, or if the standard environment variables of OpenTelemetry
            configure the export.
    """
    if not connection_string or exporters.is_telemetry_configured_by_environment():
        return None
    timer = threading.Timer(delay_seconds, _install_providers_or_log_failure, (connection_string, client_id))
    timer.daemon = True
    timer.start()
    return timer


def _install_providers_or_log_failure(connection_string: str, client_id: str) -> None:
    try:
        _set_opentelemetry_providers(_build_exporter_options(connection_string, client_id))
    except Exception as error:  # noqa: BLE001  the service works without
        _LOG.warning("cannot export to Azure Monitor", extra=logs.fields(error=type(error).__name__))
        return
    exporters.mark_providers_installed()


def _build_exporter_options(connection_string: str, client_id: str) -> dict[str, Any]:
    # Data that cannot be sent is dropped and not stored on the instance's disk.
    options = {"connection_string": connection_string, "disable_offline_storage": True}
    if not client_id:
        return options
    from azure.identity import ManagedIdentityCredential  # noqa: PLC0415  loaded late, see the module

    return options | {"credential": ManagedIdentityCredential(client_id=client_id)}


def _set_opentelemetry_providers(exporter_options: dict[str, Any]) -> None:
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

    resource = Resource.create({"service.name": exporters.SCOPE})
    # Set in code, because the SDK rejects the sampler names that the Functions host reads from the environment.
    traces = TracerProvider(sampling.ALWAYS_ON, resource)
    traces.add_span_processor(BatchSpanProcessor(AzureMonitorTraceExporter(**exporter_options)))
    trace.set_tracer_provider(traces)
    reader = PeriodicExportingMetricReader(AzureMonitorMetricExporter(**exporter_options))
    metrics.set_meter_provider(MeterProvider([reader], resource))
