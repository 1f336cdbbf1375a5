"""Tests of the traces and metrics that a running host exports."""

import asyncio
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import websockets.sync.client
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from shared.backends.embedded.provenance import SqliteChainStore
from shared.observability.metrics import INSTRUMENTS
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.ports import Target
from shared.timestamps import format_rfc3339, now
from tests.collector import Collector, read_attributes, run_collector
from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_problem, wait_until
from tests.service.test_imports import build_csv
from tests.service.test_imports import run_import as import_file

EVENT = {"ActionType": "Update", "EntityType": "Pump", "EntityID": "hunter2", "ScopeKey": "line-1"}
ORDERS = "/oi-api/data-stores/mes/databases/orders/tables/workorders"
SERVER, CLIENT = Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Return a running collector."""
    with run_collector() as created:
        yield created


@pytest.fixture(scope="module")
def traced_service(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Service]:
    """Return a service that exports traces and metrics to the collector at short intervals."""
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
    """Spans (steps of a trace) that the collector has received, with functions that wait for a span."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def wait_for_request(self, request_id: str) -> Span:
        """Wait for the span of a request and return it."""
        found = wait_until(lambda: self._find_request_spans(request_id), bool)
        return found[0]

    def wait_for_descendant(self, span: Span, name: str) -> Span:
        """Wait for a descendant span with this name, and return it."""
        return wait_until(lambda: [one for one in self._find_descendants(span) if one.name == name], bool)[0]

    def wait_for_links(self, span: Span) -> list[Span]:
        """Wait for the spans that link to the given span, and return them."""
        return wait_until(
            lambda: [
                one for one in self._collector.read_spans() if span.span_id in [link.span_id for link in one.links]
            ],
            bool,
        )

    def _find_request_spans(self, request_id: str) -> list[Span]:
        return [
            one
            for one in self._collector.read_spans()
            if read_attributes(one).get("workspace.request_id") == request_id
        ]

    def _find_descendants(self, span: Span) -> list[Span]:
        below = [one for one in self._collector.read_spans() if one.parent_span_id == span.span_id]
        return [*below, *(deeper for one in below for deeper in self._find_descendants(one))]


@pytest.fixture
def received_traces(collector: Collector) -> Traces:
    """Return access to the spans that the collector receives."""
    return Traces(collector)


def test_the_span_of_an_audit_event_links_to_its_batch(traced_service: Service, received_traces: Traces) -> None:
    """The span of an audit event contains the wait for its append, and the span of the batch links to this wait."""
    caller = traced_service.create_client("admin@t")
    reply = caller.post("/oi-api/provenance/events", json=EVENT, headers={"traceparent": TRACEPARENT})
    request = received_traces.wait_for_request(reply.headers["x-request-id"])
    assert (request.name, request.kind) == ("POST /oi-api/provenance/events", SERVER)
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == tuple(TRACEPARENT.split("-")[1:3])
    waits = received_traces.wait_for_descendant(request, "append to an audit chain")
    [batch] = received_traces.wait_for_links(waits)
    stored = received_traces.wait_for_descendant(batch, "write provenance")
    assert stored.kind == CLIENT
    assert read_attributes(stored) == {
        "db.system.name": "sqlite",
        "db.namespace": "provenance",
        "db.operation.name": "write",
    }


def test_the_span_of_a_document_links_to_its_commit(traced_service: Service, received_traces: Traces) -> None:
    """The span of a new document contains the wait for its commit, and the span of the commit links to this wait."""
    reply = traced_service.create_client("admin@t").post(ORDERS, params={"partitionKey": "a"}, json={"line": "a"})
    assert reply.status_code == 201, reply.text
    request = received_traces.wait_for_request(reply.headers["x-request-id"])
    waits = received_traces.wait_for_descendant(request, "wait for the write to documents")
    assert read_attributes(waits)["db.system.name"] == "sqlite"
    [commit] = received_traces.wait_for_links(waits)
    assert received_traces.wait_for_descendant(commit, "write documents").kind == CLIENT


def test_the_span_of_a_telemetry_request_contains_the_send_to_the_event_hub(
    traced_service: Service, received_traces: Traces
) -> None:
    """The span of a telemetry request contains the send to the Event Hub with the number of messages."""
    reply = traced_service.create_client("admin@t").post("/oi-api/telemetry/press", json=[{"value": 1}, {"value": 2}])
    sent = received_traces.wait_for_descendant(
        received_traces.wait_for_request(reply.headers["x-request-id"]), "send telemetry"
    )
    assert read_attributes(sent)["messaging.batch.message_count"] == 2


def test_the_span_of_a_trigger_batch_contains_the_sending_to_clients(
    traced_service: Service, received_traces: Traces, collector: Collector
) -> None:
    """The span of a trigger's batch contains the sending of messages to live streams."""
    assert traced_service.create_client("admin@t").post("/oi-api/telemetry/press", json={"value": 1}).status_code == 202
    batch = wait_until(lambda: [one for one in collector.read_spans() if one.name == "process telemetry"], bool)[0]
    assert (batch.kind, batch.parent_span_id) == (Span.SPAN_KIND_CONSUMER, b"")
    assert (
        read_attributes(received_traces.wait_for_descendant(batch, "send impulses"))["messaging.destination.name"]
        == "impulses"
    )


def test_rejected_requests_have_a_span(traced_service: Service, received_traces: Traces) -> None:
    """If a request is rejected early, its span has status and error code and is not marked as failed."""
    for method, path, status, code in (
        ("GET", "/oi-api/warm-queries", 401, "UNAUTHENTICATED"),
        ("GET", "/nowhere", 404, "ROUTE_NOT_FOUND"),
        ("DELETE", "/healthz", 405, "METHOD_NOT_ALLOWED"),
    ):
        reply = traced_service.create_anonymous_client().request(method, path)
        check_problem(reply, status, code)
        details = received_traces.wait_for_request(reply.headers["x-request-id"])
        found = read_attributes(details)
        assert (found["http.response.status_code"], found["workspace.error_code"]) == (status, code)
        assert (details.status.code, list(details.events)) == (Span().status.code, [])


def test_requests_that_the_host_rejects_have_a_span(traced_service: Service, received_traces: Traces) -> None:
    """If the host rejects a body over 100 MB before the app receives it, the request still has a span."""
    host, port = traced_service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"POST /oi-api/provenance/events HTTP/1.1\r\nHost: x\r\nX-Request-Id: large-1\r\n"
            b"Content-Length: 104857601\r\n\r\n"
        )
        assert b" 413 " in connection.recv(4096)
    assert read_attributes(received_traces.wait_for_request("large-1"))["http.response.status_code"] == 413


async def _append_from_another_instance(folder: Path) -> None:
    """Append a record to a chain from another process of the service."""

    async def workspace() -> str:
        return "plant-t"

    log = EventLog(ChainLog(SqliteChainStore(folder / "provenance.sqlite"), workspace))
    await log.append(Target.DOMAIN_EVENTS, "admin@t", EVENT, append_id="behind", scope_key="line-1")
    await log.close()


def test_every_metric_is_exported(traced_service: Service, collector: Collector, received_traces: Traces) -> None:
    """Each documented metric is exported, except the one for rejections under overload, which needs high load."""
    caller = traced_service.create_client("admin@t")
    asyncio.run(_append_from_another_instance(traced_service.data_dir))
    assert caller.post("/oi-api/provenance/events", json=EVENT).status_code == 201
    assert caller.post("/oi-api/provenance/events/verify", json={"ScopeKey": "line-1"}).status_code == 200
    assert caller.post("/oi-api/warm-queries", json={"query": "print 1"}).status_code == 200
    rule = {"name": "Silent", "severity": "info", "surface": "hall", "kind": "absence", "every": "P1D", "after": "P1D"}
    stored = caller.put("/oi-api/alert-rules/silent", json={**rule, "connections": ["press"]})
    assert stored.status_code == 201, stored.text
    address = f"{traced_service.url.replace('http', 'ws')}/oi-api/live-stream"
    with websockets.sync.client.connect(
        address, additional_headers={"Authorization": caller.headers["Authorization"]}, proxy=None
    ) as listener:
        assert caller.post("/oi-api/telemetry/press", json={"value": 3}).status_code == 202
        assert listener.recv(30)
        wait_until(lambda: _count_clients(collector), lambda clients: clients == 1)
    wait_until(lambda: list((traced_service.data_dir / "blobs").rglob("*.parquet")), bool, 60)
    around = {"start": format_rfc3339(now() - timedelta(days=1)), "end": format_rfc3339(now() + timedelta(days=1))}
    ranged = {"format": "csv", "dateRange": around}
    created = caller.post("/oi-api/downloads/data-connections/press", json=ranged, headers={"Prefer": "wait=30"})
    assert created.is_success, created.text
    _use_features_with_separate_metrics(traced_service, caller)
    reader = traced_service.create_client("viewer@t")
    replies = (reader.get("/oi-api/warm-queries") for _ in range(1000))
    refused = next(reply for reply in replies if reply.status_code == 429)
    assert (
        read_attributes(received_traces.wait_for_request(refused.headers["x-request-id"]))["workspace.error_code"]
        == "RATE_LIMITED"
    )
    faults = {"workspace.overload.refusals", "workspace.chain.broken", "workspace.checkpoint.failures"}
    faults |= {"workspace.background.failures", "workspace.live.quota_refusals", "workspace.downloads.quota_refusals"}
    # Chains are verified in the background at night.
    faults |= {"workspace.webhooks.source_failures", "workspace.webhooks.dead_letters", "workspace.disk.refusals"}
    faults |= {"workspace.chain.verified", "workspace.chain.verify.failures", "workspace.alerts.failures"}
    expected = set(INSTRUMENTS) - faults
    wait_until(lambda: expected - set(collector.read_metrics()), lambda missing: not missing, 60)
    wait_until(lambda: _count_clients(collector), lambda clients: clients == 0)


def _use_features_with_separate_metrics(service: Service, caller: httpx.Client) -> None:
    """Use features that have separate metrics: webhook, import, OAuth rejection, and signal mismatch."""
    unreachable = {"url": "http://127.0.0.1:65533/", "eventTypes": ["webhook.test"]}
    created = caller.post("/oi-api/webhooks", json=unreachable)
    assert created.status_code == 201, created.text
    assert caller.post(f"/oi-api/webhooks/{created.json()['id']}/test").status_code == 202
    import_file(caller, build_csv(2))
    form = {"grant_type": "client_credentials", "client_id": "oik_unknown", "client_secret": "wrong"}
    assert service.create_anonymous_client().post("/oauth2/token", data=form).status_code == 401
    lathe = caller.get("/oi-api/connections/lathe").json()
    signal = {"name": "t", "pointer": "/t", "type": "real"}
    assert caller.put("/oi-api/connections/lathe", json={**lathe, "signals": [signal]}).status_code == 200
    wait_until(lambda: caller.get("/oi-api/connections/lathe/signals").json()["signals"], bool)
    assert caller.post("/oi-api/telemetry/lathe", json={"t": "warm"}).status_code == 202


def test_no_request_content_is_exported(traced_service: Service, collector: Collector) -> None:
    """Exported traces and metrics contain neither request contents nor credentials."""
    caller = traced_service.create_client("admin@t")
    secrets = [
        caller.headers["Authorization"].removeprefix("Bearer "),
        traced_service.read_api_key("admin@t"),
        "hunter2",
        "admin@t",
    ]
    caller.post("/oi-api/provenance/events", json=EVENT, params={"q": "hunter2"})
    sent = b"".join(body for bodies in collector.bodies.values() for body in bodies)
    assert sent
    assert [secret for secret in secrets if secret.encode() in sent] == []


def _count_clients(collector: Collector) -> int | None:
    metric = collector.read_metrics().get("workspace.live.clients")
    return None if metric is None else metric.sum.data_points[0].as_int
