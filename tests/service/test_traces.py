"""What a collector is told by a running host: traces that hang together, and every metric."""

import asyncio
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import websockets.sync.client
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from shared.backends.embedded.provenance import SqliteChainStore
from shared.observability.metrics import INSTRUMENTS
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.ports import Target
from shared.timestamps import now, rfc3339
from tests.collector import Collector, attributes_of, collecting
from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_problem, wait_until

EVENT = {"ActionType": "Update", "EntityType": "Pump", "EntityID": "hunter2", "ScopeKey": "line-1"}
ORDERS = "/oi-api/data-stores/mes/databases/orders/tables/workorders"
SERVER, CLIENT = Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Return a running collector."""
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Service]:
    """Return a service that tells it everything soon."""
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
    }
    folder = tmp_path_factory.mktemp("traced")
    document = folder / "workspace.yaml"
    document.write_text(WORKSPACE.read_text().replace("requestsPerMinute: 1000000", "requestsPerMinute: 200"))
    running = Service(folder / "data", document, settings).start()
    yield running
    assert running.stop() == 0


class Traces:
    """What has arrived."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def request(self, request_id: str) -> Span:
        """Wait for the span of a request."""
        found = wait_until(lambda: self._requests(request_id), bool)
        return found[0]

    def below(self, span: Span, name: str) -> Span:
        """Wait for a span of a name below another one, at whatever depth."""
        return wait_until(lambda: [one for one in self._descendants(span) if one.name == name], bool)[0]

    def linked_to(self, span: Span) -> list[Span]:
        """Wait for the spans that link to one."""
        return wait_until(
            lambda: [one for one in self._collector.spans() if span.span_id in [link.span_id for link in one.links]],
            bool,
        )

    def _requests(self, request_id: str) -> list[Span]:
        return [one for one in self._collector.spans() if attributes_of(one).get("workspace.request_id") == request_id]

    def _descendants(self, span: Span) -> list[Span]:
        below = [one for one in self._collector.spans() if one.parent_span_id == span.span_id]
        return [*below, *(deeper for one in below for deeper in self._descendants(one))]


@pytest.fixture
def traces(collector: Collector) -> Traces:
    """Return what has arrived at the collector."""
    return Traces(collector)


def test_an_event_has_its_append_below_it(traced: Service, traces: Traces) -> None:
    """An audit event's request shows its wait for the append; the batch links back, with the store's call below it."""
    caller = traced.caller("admin@t")
    reply = caller.post("/oi-api/provenance/events", json=EVENT, headers={"traceparent": TRACEPARENT})
    request = traces.request(reply.headers["x-request-id"])
    assert (request.name, request.kind) == ("POST /oi-api/provenance/events", SERVER)
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == tuple(TRACEPARENT.split("-")[1:3])
    waits = traces.below(request, "append to an audit chain")
    [batch] = traces.linked_to(waits)
    stored = traces.below(batch, "write provenance")
    assert stored.kind == CLIENT
    assert attributes_of(stored) == {
        "db.system.name": "sqlite",
        "db.namespace": "provenance",
        "db.operation.name": "write",
    }


def test_a_document_has_its_commit_below_it(traced: Service, traces: Traces) -> None:
    """A new document's request shows its wait for the commit, which links back."""
    reply = traced.caller("admin@t").post(ORDERS, params={"partitionKey": "a"}, json={"line": "a"})
    assert reply.status_code == 201, reply.text
    request = traces.request(reply.headers["x-request-id"])
    waits = traces.below(request, "wait for the write to documents")
    assert attributes_of(waits)["db.system.name"] == "sqlite"
    [commit] = traces.linked_to(waits)
    assert traces.below(commit, "write documents").kind == CLIENT


def test_telemetry_has_its_publishing_below_it(traced: Service, traces: Traces) -> None:
    """Telemetry that is sent shows the call to the hub, with the number of its messages."""
    reply = traced.caller("admin@t").post("/oi-api/telemetry/press", json=[{"value": 1}, {"value": 2}])
    sent = traces.below(traces.request(reply.headers["x-request-id"]), "send telemetry")
    assert attributes_of(sent)["messaging.batch.message_count"] == 2


def test_a_batch_of_events_is_told(traced: Service, traces: Traces, collector: Collector) -> None:
    """What a trigger does with a batch is a span, with the sending of impulses below it."""
    assert traced.caller("admin@t").post("/oi-api/telemetry/press", json={"value": 1}).status_code == 202
    batch = wait_until(lambda: [one for one in collector.spans() if one.name == "process telemetry"], bool)[0]
    assert (batch.kind, batch.parent_span_id) == (Span.SPAN_KIND_CONSUMER, b"")
    assert attributes_of(traces.below(batch, "send impulses"))["messaging.destination.name"] == "impulses"


def test_refused_requests_are_told(traced: Service, traces: Traces) -> None:
    """What is refused before its handler has a span, with status and code; it is no error."""
    for method, path, status, code in (
        ("GET", "/oi-api/warm-queries", 401, "UNAUTHENTICATED"),
        ("GET", "/nowhere", 404, "ROUTE_NOT_FOUND"),
        ("DELETE", "/healthz", 405, "METHOD_NOT_ALLOWED"),
    ):
        reply = traced.anonymous().request(method, path)
        check_problem(reply, status, code)
        told = traces.request(reply.headers["x-request-id"])
        found = attributes_of(told)
        assert (found["http.response.status_code"], found["workspace.error_code"]) == (status, code)
        assert (told.status.code, list(told.events)) == (Span().status.code, [])


def test_what_the_host_itself_refuses_is_told(traced: Service, traces: Traces) -> None:
    """A body that is announced over 100 MB never reaches the app; its refusal is a span all the same."""
    host, port = traced.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"POST /oi-api/provenance/events HTTP/1.1\r\nHost: x\r\nX-Request-Id: large-1\r\n"
            b"Content-Length: 104857601\r\n\r\n"
        )
        assert b" 413 " in connection.recv(4096)
    assert attributes_of(traces.request("large-1"))["http.response.status_code"] == 413


async def _append_behind_its_back(folder: Path) -> None:
    """Append to a chain as another instance would."""

    async def workspace() -> str:
        return "plant-t"

    log = EventLog(ChainLog(SqliteChainStore(folder / "provenance.sqlite"), workspace))
    await log.append(Target.DOMAIN_EVENTS, "admin@t", EVENT, append_id="behind", scope_key="line-1")
    await log.close()


def test_every_metric_arrives(traced: Service, collector: Collector, traces: Traces) -> None:
    """Each metric of the list comes from what it counts, but the refusals of a crowd, which takes one."""
    caller = traced.caller("admin@t")
    asyncio.run(_append_behind_its_back(traced.data_dir))
    assert caller.post("/oi-api/provenance/events", json=EVENT).status_code == 201
    assert caller.post("/oi-api/provenance/events/verify", json={"ScopeKey": "line-1"}).status_code == 200
    assert caller.post("/oi-api/warm-queries", json={"query": "print 1"}).status_code == 200
    address = f"{traced.url.replace('http', 'ws')}/oi-api/live-stream"
    with websockets.sync.client.connect(
        address, additional_headers={"Authorization": caller.headers["Authorization"]}, proxy=None
    ) as listener:
        assert caller.post("/oi-api/telemetry/press", json={"value": 3}).status_code == 202
        assert listener.recv(30)
        wait_until(lambda: _clients(collector), lambda clients: clients == 1)
    wait_until(lambda: list((traced.data_dir / "blobs").rglob("*.parquet")), bool, 60)
    around = {"start": rfc3339(now() - timedelta(days=1)), "end": rfc3339(now() + timedelta(days=1))}
    ranged = {"format": "csv", "dateRange": around}
    made = caller.post("/oi-api/downloads/data-connections/press", json=ranged, headers={"Prefer": "wait=30"})
    assert made.is_success, made.text
    reader = traced.caller("viewer@t")
    refused = wait_until(lambda: reader.get("/oi-api/warm-queries"), lambda reply: reply.status_code == 429, 60)
    assert attributes_of(traces.request(refused.headers["x-request-id"]))["workspace.error_code"] == "RATE_LIMITED"
    faults = {"workspace.overload.refusals", "workspace.chain.broken", "workspace.checkpoint.failures"}
    faults |= {"workspace.background.failures", "workspace.live.quota_refusals", "workspace.downloads.quota_refusals"}
    wanted = set(INSTRUMENTS) - faults
    wait_until(lambda: wanted - set(collector.metrics()), lambda missing: not missing, 60)
    wait_until(lambda: _clients(collector), lambda clients: clients == 0)


def test_nothing_of_a_request_is_told(traced: Service, collector: Collector) -> None:
    """Neither what callers gave nor what lets them in reaches the collector."""
    caller = traced.caller("admin@t")
    secrets = [caller.headers["Authorization"].removeprefix("Bearer "), traced.key("admin@t"), "hunter2", "admin@t"]
    caller.post("/oi-api/provenance/events", json=EVENT, params={"q": "hunter2"})
    sent = b"".join(body for bodies in collector.bodies.values() for body in bodies)
    assert sent
    assert [secret for secret in secrets if secret.encode() in sent] == []


def _clients(collector: Collector) -> int | None:
    metric = collector.metrics().get("workspace.live.clients")
    return None if metric is None else metric.sum.data_points[0].as_int
