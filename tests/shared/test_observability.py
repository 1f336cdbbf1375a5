"""Traces and metrics: off without an exporter, told to a collector where one is named."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from shared.observability import INSTRUMENTS

ROOT = Path(__file__).parents[2]
PROGRAM = """
from shared.observability import count, enabled, measure, span
with span("outer", route="a"):
    count("workspace.ingest.events", 3)
    measure("workspace.ingest.lag", 0.5)
try:
    with span("failing"):
        raise ValueError("no")
except ValueError:
    pass
import sys
print(enabled(), "opentelemetry" in sys.modules)
if enabled():
    from opentelemetry import metrics, trace
    trace.get_tracer_provider().shutdown()
    metrics.get_meter_provider().shutdown()
"""


class Collector:
    """A collector that keeps what it is sent: the receiving end of OTLP over HTTP."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.bodies.setdefault(self.path, []).append(body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def spans(self) -> list[str]:
        """Return the names of the spans that came."""
        found = []
        for body in self.bodies.get("/v1/traces", []):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                found += [span.name for scope in resource.scope_spans for span in scope.spans]
        return found

    def metrics(self) -> set[str]:
        """Return the names of the metrics that came."""
        found: set[str] = set()
        for body in self.bodies.get("/v1/metrics", []):
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                found |= {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Return a running collector."""
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def run(**environment: str) -> str:
    """Return what the program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_nothing_is_loaded_without_an_exporter() -> None:
    """Without an exporter the calls do nothing and the library is not even imported."""
    assert run() == "False False"


def test_spans_and_metrics_reach_a_collector(collector: Collector) -> None:
    """With an exporter named, spans and metrics arrive there."""
    port = collector.server.server_port
    assert run(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}") == "True True"
    assert sorted(collector.spans()) == ["failing", "outer"]
    assert collector.metrics() >= {"workspace.ingest.events", "workspace.ingest.lag"}


def test_every_metric_is_used_and_documented() -> None:
    """Each metric stands in the documentation, and the code tells no other."""
    page = (ROOT / "docs" / "observability.md").read_text()
    used: set[str] = set()
    for folder in ("shared", "functions"):
        for path in (ROOT / folder).rglob("*.py"):
            used |= set(re.findall(r'(?:count|measure)\(\s*"(workspace\.[a-z_.]+)"', path.read_text()))
    assert used == set(INSTRUMENTS)
    assert all(f"`{name}`" in page for name in INSTRUMENTS)
