"""Tests of exporting traces and metrics to Azure Monitor, with the real exporter and a fake endpoint."""

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[5]
KEY = "00000000-0000-0000-0000-000000000001"
PROGRAM = """
import os, sys
from shared.backends.azure.monitor import start_export_if_configured
from shared.observability.exporters import is_signal_enabled
from shared.observability.metrics import count, record_histogram_value
from shared.observability.exporters import Signal
from shared.observability.tracing import open_span
waiting = start_export_if_configured(os.environ.get("GIVEN", ""), delay_seconds=0.01)
print(waiting is not None, is_signal_enabled(Signal.TRACES), "opentelemetry" in sys.modules)
with open_span("before"):
    count("workspace.ingest.events", 1)
if waiting:
    waiting.join()
with open_span("a request", {"route": "a"}):
    count("workspace.ingest.events", 3)
    record_histogram_value("workspace.ingest.lag", 0.5)
unsampled = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
with open_span("an unsampled request", parent_trace_headers=unsampled):
    pass
print(is_signal_enabled(Signal.TRACES))
if is_signal_enabled(Signal.TRACES):
    from opentelemetry import metrics, trace
    trace.get_tracer_provider().shutdown()
    metrics.get_meter_provider().shutdown()
"""


class Ingestion:
    """Fake ingestion endpoint of Azure Monitor that records telemetry."""

    def __init__(self) -> None:
        self.envelopes: list[dict[str, Any]] = []
        ingestion = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                found = json.loads(body) if self.path.endswith("/track") else []
                ingestion.envelopes += found
                reply = {"itemsReceived": len(found), "itemsAccepted": len(found), "errors": []}
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(reply).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def list_items_of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the received telemetry items of a type."""
        return [each["data"]["baseData"] for each in self.envelopes if each["data"]["baseType"] == kind]


@pytest.fixture
def ingestion() -> Iterator[Ingestion]:
    """Return a running endpoint."""
    made = Ingestion()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def run_program(**environment: str) -> list[str]:
    """Run this module's example program in a separate process and return its output."""
    given = {"APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true"} | environment
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=given, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_spans_and_metrics_are_exported(ingestion: Ingestion) -> None:
    """The exporter is loaded some time after the start, and then exports spans and metrics."""
    address = f"InstrumentationKey={KEY};IngestionEndpoint=http://127.0.0.1:{ingestion.server.server_port}/"
    assert run_program(GIVEN=address) == ["True", "False", "False", "True"]
    assert [each["name"] for each in ingestion.list_items_of_type("RemoteDependencyData")] == [
        "a request",
        "an unsampled request",
    ]
    metrics = {
        name["name"]: name["value"] for each in ingestion.list_items_of_type("MetricData") for name in each["metrics"]
    }
    assert metrics["workspace.ingest.events"] == 3
    assert metrics["workspace.ingest.lag"] == 0.5
    assert {each["iKey"] for each in ingestion.envelopes} == {KEY}


def test_sampler_settings_of_the_host_change_nothing(ingestion: Ingestion) -> None:
    """Sampler settings of the Functions host do not remove any span or metric of the app.

    The SDK does not support the names of these samplers; it would warn and use its default.
    """
    address = f"InstrumentationKey={KEY};IngestionEndpoint=http://127.0.0.1:{ingestion.server.server_port}/"
    settings = {"OTEL_TRACES_SAMPLER": "microsoft.fixed_percentage", "OTEL_TRACES_SAMPLER_ARG": "1.0"}
    assert run_program(GIVEN=address, PYTHONWARNINGS="error", **settings) == ["True", "False", "False", "True"]
    assert len(ingestion.list_items_of_type("RemoteDependencyData")) == 2
    assert ingestion.list_items_of_type("MetricData")


def test_nothing_is_exported_without_a_connection_string() -> None:
    """Without a connection string, no timer is started and nothing is loaded."""
    assert run_program() == ["False", "False", "False", "False"]


def test_a_collector_replaces_azure_monitor() -> None:
    """If another collector is configured, nothing is exported to Azure Monitor."""
    assert run_program(GIVEN="InstrumentationKey=x", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")[:2] == [
        "False",
        "True",
    ]


def test_an_invalid_connection_string_is_ignored() -> None:
    """With an invalid connection string, the service runs and exports nothing."""
    assert run_program(GIVEN="InstrumentationKey=no") == ["True", "False", "False", "False"]
