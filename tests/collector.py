"""Collector of traces and metrics (OTLP over HTTP) for tests."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """OTLP receiver that stores request bodies by URL path."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                collector.bodies.setdefault(self.path, []).append(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        """URL to which exporters send traces and metrics."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def read_spans(self, path: str = "/v1/traces") -> list[Span]:
        """Return the received spans."""
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies.get(path, [])]
        scopes = [scope for sent in requests for each in sent.resource_spans for scope in each.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def read_service_names(self) -> set[str]:
        """Return the names of the services that sent spans."""
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies.get("/v1/traces", [])]
        resources = [each.resource for sent in requests for each in sent.resource_spans]
        return {str(read_attributes(resource)["service.name"]) for resource in resources}

    def read_metrics(self, path: str = "/v1/metrics") -> dict[str, Metric]:
        """Return the latest received value of each metric by name."""
        found: dict[str, Metric] = {}
        for body in self.bodies.get(path, []):
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    found |= {metric.name: metric for metric in scope.metrics}
        return found


def read_attributes(details: Any) -> dict[str, str | int | float | bool]:
    """Return the attributes of a span, an event or a resource."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in details.attributes}


@contextmanager
def run_collector() -> Iterator[Collector]:
    """Context manager: run a collector of traces and metrics for the duration of the block."""
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        thread.join()
        collector.server.server_close()
