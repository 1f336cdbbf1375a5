"""Tests that the failure of one dependency affects only the routes that need it."""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import (
    Service,
    build_range_around_now,
    check_failing_fields,
    check_problem,
    count_rows,
    wait_until,
)

SLOWEST_SECONDS = 60.0
"""Maximum duration of a reply while a dependency fails."""
EVENT = {"ActionType": "Update", "EntityType": "Pump", "EntityID": "p-1", "ScopeKey": "line-1"}
ORDERS = "/oi-api/data-stores/mes/databases/orders/tables/workorders"
TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
MCP_ACCEPTS = {"Accept": "application/json, text/event-stream"}
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "list": ("GET", "/oi-api/warm-queries", {}),
    "graphql": ("POST", "/v1/plant-t/graphql", {"json": {"query": "{ workspace { id } }"}}),
    "openapi": ("GET", "/oi-api/openapi", {}),
    "mcp": ("POST", "/oi-api/mcp", {"json": TOOLS, "headers": MCP_ACCEPTS}),
    "order": ("POST", ORDERS, {"params": {"partitionKey": "a"}, "json": {"line": "a"}}),
    "orders": ("GET", ORDERS, {"params": {"partitionKey": "a"}}),
    "query": ("POST", "/oi-api/warm-queries", {"json": {"query": "Telemetry | count"}}),
    "telemetry": ("POST", "/oi-api/telemetry/press", {"json": {"value": 1}}),
    "event": ("POST", "/oi-api/provenance/events", {"json": EVENT}),
    "events": ("GET", "/oi-api/provenance/events/query", {"params": {"scopeKey": "line-1"}}),
    "downloads": ("GET", "/oi-api/downloads", {}),
}
EVERYTHING = ("alive", "token", *REQUESTS)


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service whose dependencies the tests stop and start one at a time."""
    settings = {"REFRESH_SECONDS": "1", "QUERY_TIMEOUT_SECONDS": "3"}
    running = Service(tmp_path_factory.mktemp("degraded") / "data", WORKSPACE, settings).start()
    yield running
    assert running.stop() == 0


class Probe:
    """Set of named requests, each of which shows whether one part of the service works."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._caller = service.create_client("admin@t")

    def send_in_time(self, name: str) -> httpx.Response:
        """Send a named request, check that the reply arrives in time, and return it."""
        started = time.monotonic()
        reply = self._send(name)
        assert time.monotonic() - started < SLOWEST_SECONDS, name
        return reply

    def _send(self, name: str) -> httpx.Response:
        if name == "alive":
            return self._service.create_anonymous_client().get("/healthz")
        if name == "token":
            return self._service.create_anonymous_client(self._service.read_api_key("editor@t")).get(
                "/workspace/api/keys/jwt"
            )
        method, path, options = REQUESTS[name]
        return self._caller.request(method, path, **options)

    def check_key(self) -> None:
        """Check that a request with an API key succeeds without delay."""
        key = self._service.read_api_key("viewer@t")
        reply = self._service.create_anonymous_client(key).post(
            "/v1/plant-t/graphql", json={"query": "{ workspace { id } }"}
        )
        assert reply.is_success, reply.text

    def check_success(self, *names: str) -> None:
        """Check that all of the named requests succeed."""
        replies = {name: self.send_in_time(name) for name in names}
        assert not {name: reply.text for name, reply in replies.items() if not reply.is_success}

    def check_unavailable(self, name: str, code: str) -> None:
        """Check that a named request returns 503 with the error code and a Retry-After header."""
        reply = self.send_in_time(name)
        check_problem(reply, 503, code)
        assert int(reply.headers["retry-after"]) >= 1

    def wait_for_recovery(self, *names: str) -> None:
        """Wait until all of the named requests succeed again."""
        for name in names:
            wait_until(lambda name=name: self.send_in_time(name), lambda reply: reply.is_success, 60)  # type: ignore[misc]

    def wait_for_readiness(self, *failing_dependencies: str) -> None:
        """Wait until /readyz lists exactly the given failing dependencies; only authorized callers see this list."""
        if not failing_dependencies:
            wait_until(lambda: self._caller.get("/readyz"), lambda reply: reply.status_code == 200, 60)
            return
        details = wait_until(lambda: self._caller.get("/readyz"), lambda reply: reply.status_code == 503)
        assert check_problem(details, 503, "NOT_READY")["failing"] == list(failing_dependencies)
        for stranger in (self._service.create_anonymous_client(), self._service.create_anonymous_client("x")):
            assert "failing" not in check_problem(stranger.get("/readyz"), 503, "NOT_READY")


def list_names_except(*names: str) -> tuple[str, ...]:
    """Return the names of all requests of the probe except the given names."""
    return tuple(name for name in EVERYTHING if name not in names)


def find_engine_process_id(service: Service) -> int:
    """Return the process id of the query engine."""
    found = subprocess.run(
        ["pgrep", "-P", str(service.pid), "-f", "emulators.kusto"], capture_output=True, text=True, check=True
    )
    [pid] = map(int, found.stdout.split())
    return pid


def test_all_requests_succeed_while_dependencies_work(plant: Service) -> None:
    """While all dependencies work, all requests succeed and the service is ready."""
    probe = Probe(plant)
    probe.check_success(*EVERYTHING)
    probe.wait_for_readiness()


def test_a_killed_engine_affects_only_queries(plant: Service) -> None:
    """After the query engine is killed, queries get 503 until it has restarted; telemetry sent meanwhile is stored."""
    probe = Probe(plant)
    before = count_rows(plant.create_client("editor@t"), "press")
    os.kill(find_engine_process_id(plant), signal.SIGKILL)
    wait_until(lambda: probe.send_in_time("query"), lambda reply: reply.status_code == 503)
    probe.check_success("telemetry")
    probe.wait_for_recovery("query")
    probe.check_success(*EVERYTHING)
    probe.wait_for_readiness()
    wait_until(lambda: count_rows(plant.create_client("editor@t"), "press"), lambda now: now >= before + 2, 60)


def test_a_hanging_engine_affects_only_queries(plant: Service) -> None:
    """While the query engine hangs, queries time out, and all other requests succeed."""
    probe = Probe(plant)
    engine = find_engine_process_id(plant)
    os.kill(engine, signal.SIGSTOP)
    try:
        reply = probe.send_in_time("query")
        assert (reply.status_code, reply.json()["code"]) in {
            (504, "QUERY_TIMEOUT"),
            (503, "QUERY_ENGINE_UNAVAILABLE"),
        }, reply.text
        probe.check_success(*list_names_except("query"))
        probe.wait_for_readiness("query engine")
    finally:
        os.kill(engine, signal.SIGCONT)
    probe.wait_for_recovery("query")
    probe.wait_for_readiness()


def test_an_invalid_rule_is_rejected_while_the_engine_hangs(plant: Service) -> None:
    """While the query engine hangs, an alert rule is still rejected for errors that do not concern its columns."""
    rule = {
        "name": "Wrong",
        "severity": "info",
        "surface": "hall",
        "kind": "threshold",
        "every": "PT1S",
        "query": "newest",
        "parameters": {"connexion": "press"},
        "condition": {"column": "value", "operator": "gt", "value": 1},
    }
    engine = find_engine_process_id(plant)
    os.kill(engine, signal.SIGSTOP)
    try:
        fields = check_failing_fields(plant.create_client("admin@t").put("/oi-api/alert-rules/wrong", json=rule))
    finally:
        os.kill(engine, signal.SIGCONT)
    assert {"every", "parameters.connexion"} <= set(fields)
    Probe(plant).wait_for_recovery("query")


@contextmanager
def lock_database(path: Path) -> Iterator[None]:
    """Hold the write lock of a SQLite file."""
    connection = sqlite3.connect(path, autocommit=True)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@pytest.mark.parametrize(
    ("file", "affected_request", "code", "failing_dependencies"),
    [
        ("workspace.sqlite", "token", "CREDENTIALS_UNAVAILABLE", ("workspace file",)),
        ("provenance.sqlite", "event", "PROVENANCE_UNAVAILABLE", ("audit log",)),
        ("hub.sqlite", "telemetry", "TELEMETRY_HUB_UNAVAILABLE", ("telemetry hub",)),
        ("documents.sqlite", "order", "DATA_STORE_UNAVAILABLE", ("data stores",)),
        ("durable.sqlite", "", "", ("durable engine",)),
        ("rate-limits.sqlite", "", "", ()),
    ],
)
def test_a_locked_database_affects_only_its_writers(
    plant: Service, file: str, affected_request: str, code: str, failing_dependencies: tuple[str, ...]
) -> None:
    """While a database is locked, requests that write to it get 503 within the time limit.

    All other requests succeed.
    """
    probe = Probe(plant)
    with lock_database(plant.data_dir / file):
        if affected_request:
            probe.check_unavailable(affected_request, code)
        # Issuing a token also writes an audit event.
        probe.check_success(*list_names_except(affected_request, *(["token"] if affected_request == "event" else [])))
        probe.check_key()
        if failing_dependencies:
            probe.wait_for_readiness(*failing_dependencies)
    probe.wait_for_recovery(*EVERYTHING)
    probe.wait_for_readiness()


def test_a_missing_blob_store_affects_only_downloads(plant: Service) -> None:
    """If the blob store is missing, only downloads fail; later downloads contain the messages sent meanwhile."""
    probe, blobs = Probe(plant), plant.data_dir / "blobs"
    away = blobs.with_name("away")
    probe.check_success("telemetry")
    wait_until(lambda: list(blobs.rglob("*.parquet")), bool, 60)
    mark = f"m-{time.monotonic()}"
    blobs.rename(away)
    blobs.write_text("no folder")
    try:
        probe.wait_for_readiness("cold data")
        probe.check_success(*EVERYTHING)
        sent = plant.create_client("editor@t").post("/oi-api/telemetry/press", json={"messageId": mark})
        assert sent.status_code == 202
    finally:
        blobs.unlink()
        away.rename(blobs)
    probe.wait_for_readiness()
    wait_until(lambda: _download_rows(plant), lambda text: mark in text, 90)
    probe.check_success(*EVERYTHING)


def _download_rows(service: Service) -> str:
    caller = service.create_client("editor@t")
    body = {"format": "csv", "dateRange": build_range_around_now()}
    reply = caller.post("/oi-api/downloads/data-connections/press", json=body, headers={"Prefer": "wait=30"})
    assert reply.is_success, reply.text
    return "".join(service.create_anonymous_client().get(file["url"]).text for file in reply.json().get("files", []))


def test_only_live_streams_use_web_pubsub(tmp_path: Path) -> None:
    """Live streams lead to the configured Web PubSub; if it cannot be reached, all other requests succeed."""
    settings = {"WEB_PUBSUB_ENDPOINT": "http://127.0.0.1:9", "WEB_PUBSUB_ACCESS_KEY": "k" * 32}
    service = Service(tmp_path / "data", WORKSPACE, settings).start()
    try:
        _check_stream_addresses(service.create_client("viewer@t"))
        probe = Probe(service)
        probe.check_success(*EVERYTHING)
        probe.wait_for_readiness()
        wait_until(lambda: count_rows(service.create_client("editor@t"), "press"), lambda stored: stored == 1, 60)
    finally:
        assert service.stop() == 0


def _check_stream_addresses(viewer: httpx.Client) -> None:
    """Check that a handshake is redirected to Web PubSub, with its filters, and that a negotiated URL leads there."""
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
    reply = viewer.get("/oi-api/live-stream?surface=hall&windowSec=5", headers=upgrade)
    assert reply.status_code == 307
    location = urlsplit(reply.headers["location"])
    assert (location.scheme, location.netloc, location.path) == ("ws", "127.0.0.1:9", "/client/hubs/live")
    assert set(parse_qs(location.query)) == {"access_token", "surface", "windowSec"}
    negotiated = viewer.get("/oi-api/live-stream/negotiate").json()["url"]
    assert negotiated.startswith("ws://127.0.0.1:9/client/hubs/live?")
    check_problem(viewer.get("/oi-api/live-stream?surface=no", headers=upgrade), 404, "SURFACE_NOT_FOUND")
