"""Tests of traces and metrics: disabled without an exporter, and otherwise sent to a collector."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.observability.exporters import PROTOCOL
from shared.observability.metrics import INSTRUMENTS
from tests.collector import Collector, read_attributes, run_collector

TRACES, METRICS = "/v1/traces", "/v1/metrics"
ROOT = Path(__file__).parents[4]
PROGRAM = """
from shared.errors import build_invalid_field_error
from shared.observability.exporters import Signal, is_signal_enabled
from shared.observability.metrics import INSTRUMENTS, add_to_level_metric, count, record_histogram_value
from shared.observability.tracing import open_batch_span, open_call_span, find_current_span_context, open_span
with open_call_span("poll", {}):
    pass
callers = []
with open_span("outer", {"route": "a"}):
    callers.append(find_current_span_context())
    with open_call_span("read things", {"db.system.name": "sqlite"}):
        pass
    try:
        with open_span("refused"):
            raise build_invalid_field_error("x", "is wrong")
    except Exception:
        pass
with open_batch_span("batch", [*callers, None], {"db.operation.batch.size": 2}):
    pass
with open_batch_span("nobody's batch", [None], {}):
    pass
try:
    with open_span("failing"):
        raise ValueError("hunter2")
except ValueError:
    pass
for name, instrument in INSTRUMENTS.items():
    {"counter": count, "histogram": record_histogram_value, "level": add_to_level_metric}[instrument.kind](name, 3)
import sys
print(*(is_signal_enabled(signal) for signal in Signal), "opentelemetry" in sys.modules)
if "opentelemetry" in sys.modules:
    from opentelemetry import metrics, trace
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        getattr(provider, "shutdown", print)()
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Return a running collector."""
    with run_collector() as started:
        yield started


def run_program(**environment: str) -> str:
    """Run the test's program in a separate process with the given variables, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_nothing_is_loaded_without_an_exporter() -> None:
    """Without an exporter, traces and metrics do nothing, and OpenTelemetry is not imported."""
    assert run_program() == "False False False"


def test_spans_and_metrics_reach_a_collector(collector: Collector) -> None:
    """If an endpoint is set, it receives spans and all metrics under the service's name."""
    assert run_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address) == "True True True"
    assert sorted(span.name for span in collector.read_spans()) == [
        "batch",
        "failing",
        "outer",
        "read things",
        "refused",
    ]
    assert collector.read_service_names() == {"industrial-data-workspace"}
    found = collector.read_metrics()
    assert set(found) == set(INSTRUMENTS)
    for name, instrument in INSTRUMENTS.items():
        metric = found[name]
        assert (metric.unit, metric.description) == (instrument.unit, instrument.description)
        if instrument.kind == "histogram":
            assert [point.sum for point in metric.histogram.data_points] == [3]
        else:
            assert [point.as_int for point in metric.sum.data_points] == [3]
            assert metric.sum.is_monotonic == (instrument.kind == "counter")


def test_spans_have_the_expected_parents(collector: Collector) -> None:
    """The span of a call is a child of the current span; the span of a batch has a new trace with links."""
    run_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, OTEL_SERVICE_NAME="plant-a")
    spans = {span.name: span for span in collector.read_spans()}
    assert spans["read things"].parent_span_id == spans["outer"].span_id
    assert read_attributes(spans["read things"]) == {"db.system.name": "sqlite"}
    assert not spans["batch"].parent_span_id
    assert [link.span_id for link in spans["batch"].links] == [spans["outer"].span_id]
    assert collector.read_service_names() == {"plant-a"}


def test_a_failed_span_has_no_exception_message(collector: Collector) -> None:
    """A failed span has the exception's class but not its message; a rejected request does not fail its span."""
    run_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address)
    spans = {span.name: span for span in collector.read_spans()}
    assert (spans["failing"].status.code, read_attributes(spans["failing"])) == (2, {"error.type": "ValueError"})
    assert (spans["refused"].status.code, read_attributes(spans["refused"])["workspace.error_code"]) == (
        0,
        "INVALID_REQUEST",
    )
    assert not [event for span in spans.values() for event in span.events]
    assert not [body for bodies in collector.bodies.values() for body in bodies if b"hunter2" in body]


@pytest.mark.parametrize(
    ("variables", "arriving"),
    [
        ({"OTEL_TRACES_EXPORTER": "none"}, {METRICS}),
        ({"OTEL_METRICS_EXPORTER": "none"}, {TRACES}),
        ({"OTEL_LOGS_EXPORTER": "none"}, {TRACES, METRICS}),
        ({"OTEL_SDK_DISABLED": "true"}, set()),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, set()),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": PROTOCOL, "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, {TRACES, METRICS}),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, {METRICS}),
    ],
)
def test_standard_variables_disable_traces_or_metrics(
    collector: Collector, variables: dict[str, str], arriving: set[str]
) -> None:
    """Traces or metrics that a standard variable disables are not exported."""
    run_program(OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, **variables)
    assert set(collector.bodies) == arriving


def test_traces_and_metrics_can_have_separate_endpoints(collector: Collector) -> None:
    """The endpoint variable of one signal (traces or metrics) is used unchanged, and only for this signal."""
    assert run_program(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.address}/spans") == "True False True"
    assert collector.read_spans("/spans")
    assert set(collector.bodies) == {"/spans"}
    assert run_program(OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=f"{collector.address}/numbers") == "False True True"
    assert set(collector.read_metrics("/numbers")) == set(INSTRUMENTS)


def test_every_metric_is_used_and_documented() -> None:
    """Code and documentation contain exactly the declared metrics."""
    page = (ROOT / "docs" / "reference" / "observability.md").read_text()
    used: set[str] = set()
    for folder in ("shared", "functions", "local", "emulators"):
        for path in (ROOT / folder).rglob("*.py"):
            used |= set(
                re.findall(
                    r'(?:count|record_histogram_value|add_to_level_metric)\(\s*"(workspace\.[a-z_.]+)"',
                    path.read_text(),
                )
            )
    assert used == set(INSTRUMENTS)
    assert all(f"`{name}`" in page for name in INSTRUMENTS)
