"""What fails alone: while one thing that the service stands on is away, everything else goes on, and it comes back."""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_problem, count_rows, wait_until

SLOWEST_SECONDS = 60.0
"""Longest time of any answer while something is away."""
EVENT = {"ActionType": "Update", "EntityType": "Pump", "EntityID": "p-1", "ScopeKey": "line-1"}
DOWNLOAD = {"format": "csv", "dateRange": {"start": "2026-01-01T00:00:00Z", "end": "2026-12-01T00:00:00Z"}}
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
    """Return a service whose parts the tests take away and give back, one at a time."""
    settings = {"REFRESH_SECONDS": "1", "QUERY_TIMEOUT_SECONDS": "3"}
    running = Service(tmp_path_factory.mktemp("degraded") / "data", WORKSPACE, settings).start()
    yield running
    assert running.stop() == 0


class Plant:
    """What is asked of it, each by its name."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._caller = service.caller("admin@t")

    def ask(self, name: str) -> httpx.Response:
        """Ask for one thing, and fail when the answer takes long."""
        started = time.monotonic()
        reply = self._asked(name)
        assert time.monotonic() - started < SLOWEST_SECONDS, name
        return reply

    def _asked(self, name: str) -> httpx.Response:
        if name == "alive":
            return self._service.anonymous().get("/healthz")
        if name == "token":
            return self._service.anonymous(self._service.key("editor@t")).get("/workspace/api/keys/jwt")
        method, path, options = REQUESTS[name]
        return self._caller.request(method, path, **options)

    def works_with_a_key(self) -> None:
        """Fail unless a request with an API key is answered at once; its last use is noted beside it."""
        key = self._service.key("viewer@t")
        reply = self._service.anonymous(key).post("/v1/plant-t/graphql", json={"query": "{ workspace { id } }"})
        assert reply.is_success, reply.text

    def works(self, *names: str) -> None:
        """Fail unless all of these are done."""
        replies = {name: self.ask(name) for name in names}
        assert not {name: reply.text for name, reply in replies.items() if not reply.is_success}

    def unavailable(self, name: str, code: str) -> None:
        """Fail unless this is refused as unavailable, with a time to come again."""
        reply = self.ask(name)
        check_problem(reply, 503, code)
        assert int(reply.headers["retry-after"]) >= 1

    def recovers(self, *names: str) -> None:
        """Wait until all of these are done again."""
        for name in names:
            wait_until(lambda name=name: self.ask(name), lambda reply: reply.is_success, 60)  # type: ignore[misc]

    def ready(self, *failing: str) -> None:
        """Wait until the service is ready, or says that these are failing: to an authorised caller alone."""
        if not failing:
            wait_until(lambda: self._caller.get("/readyz"), lambda reply: reply.status_code == 200, 60)
            return
        told = wait_until(lambda: self._caller.get("/readyz"), lambda reply: reply.status_code == 503)
        assert check_problem(told, 503, "NOT_READY")["failing"] == list(failing)
        for stranger in (self._service.anonymous(), self._service.anonymous("x")):
            assert "failing" not in check_problem(stranger.get("/readyz"), 503, "NOT_READY")


def others(*names: str) -> tuple[str, ...]:
    """Return everything but these."""
    return tuple(name for name in EVERYTHING if name not in names)


def engine_of(service: Service) -> int:
    """Return the process id of the query engine."""
    found = subprocess.run(
        ["pgrep", "-P", str(service.pid), "-f", "emulators.kusto"], capture_output=True, text=True, check=True
    )
    [pid] = map(int, found.stdout.split())
    return pid


def test_everything_works(plant: Service) -> None:
    """With all in its place everything is done, and the service is ready."""
    asked = Plant(plant)
    asked.works(*EVERYTHING)
    asked.ready()


def test_a_killed_engine_is_missed_by_queries_alone(plant: Service) -> None:
    """Queries are unavailable until the engine is back, which needs no restart; telemetry sent meanwhile arrives."""
    asked = Plant(plant)
    before = count_rows(plant.caller("editor@t"), "press")
    os.kill(engine_of(plant), signal.SIGKILL)
    wait_until(lambda: asked.ask("query"), lambda reply: reply.status_code == 503)
    asked.works("telemetry")
    asked.recovers("query")
    asked.works(*EVERYTHING)
    asked.ready()
    wait_until(lambda: count_rows(plant.caller("editor@t"), "press"), lambda now: now >= before + 2, 60)


def test_an_engine_that_hangs_holds_up_queries_alone(plant: Service) -> None:
    """While it does not answer, queries end by their time-out; all else works; then they are answered again."""
    asked = Plant(plant)
    engine = engine_of(plant)
    os.kill(engine, signal.SIGSTOP)
    try:
        reply = asked.ask("query")
        assert (reply.status_code, reply.json()["code"]) in {
            (504, "QUERY_TIMEOUT"),
            (503, "QUERY_ENGINE_UNAVAILABLE"),
        }, reply.text
        asked.works(*others("query"))
        asked.ready("query engine")
    finally:
        os.kill(engine, signal.SIGCONT)
    asked.recovers("query")
    asked.ready()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's one lock for writers."""
    connection = sqlite3.connect(path, autocommit=True)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@pytest.mark.parametrize(
    ("file", "missed", "code", "failing"),
    [
        ("workspace.sqlite", "token", "CREDENTIALS_UNAVAILABLE", ("workspace file",)),
        ("provenance.sqlite", "event", "PROVENANCE_UNAVAILABLE", ("audit log",)),
        ("hub.sqlite", "telemetry", "TELEMETRY_HUB_UNAVAILABLE", ("telemetry hub",)),
        ("documents.sqlite", "order", "DATA_STORE_UNAVAILABLE", ("data stores",)),
        ("durable.sqlite", "", "", ("durable engine",)),
        ("rate-limits.sqlite", "", "", ()),
    ],
)
def test_a_locked_file_is_missed_by_its_writers_alone(
    plant: Service, file: str, missed: str, code: str, failing: tuple[str, ...]
) -> None:
    """What writes to a file that another process holds ends as unavailable in time; readers and all else go on."""
    asked = Plant(plant)
    with locked(plant.data_dir / file):
        if missed:
            asked.unavailable(missed, code)
        # Minting is audited, too.
        asked.works(*others(missed, *(["token"] if missed == "event" else [])))
        asked.works_with_a_key()
        if failing:
            asked.ready(*failing)
    asked.recovers(*EVERYTHING)
    asked.ready()


def test_a_missing_blob_store_is_missed_by_downloads_alone(plant: Service) -> None:
    """Without the archive's folder nothing else suffers; what was sent meanwhile is in a download made afterwards."""
    asked, blobs = Plant(plant), plant.data_dir / "blobs"
    away = blobs.with_name("away")
    asked.works("telemetry")
    wait_until(lambda: list(blobs.rglob("*.parquet")), bool, 60)
    mark = f"m-{time.monotonic()}"
    blobs.rename(away)
    blobs.write_text("no folder")
    try:
        asked.ready("cold data")
        asked.works(*EVERYTHING)
        sent = plant.caller("editor@t").post("/oi-api/telemetry/press", json={"messageId": mark})
        assert sent.status_code == 202
    finally:
        blobs.unlink()
        away.rename(blobs)
    asked.ready()
    wait_until(lambda: _downloaded(plant), lambda text: mark in text, 90)
    asked.works(*EVERYTHING)


def _downloaded(service: Service) -> str:
    caller = service.caller("editor@t")
    reply = caller.post("/oi-api/downloads/data-connections/press", json=DOWNLOAD, headers={"Prefer": "wait=30"})
    assert reply.is_success, reply.text
    return "".join(service.anonymous().get(file["url"]).text for file in reply.json().get("files", []))


def test_without_a_message_service_only_listeners_wait(tmp_path: Path) -> None:
    """Where nobody carries the live stream everything else works, telemetry included."""
    settings = {"WEB_PUBSUB_ENDPOINT": "http://127.0.0.1:9", "WEB_PUBSUB_ACCESS_KEY": "k" * 32}
    service = Service(tmp_path / "data", WORKSPACE, settings).start()
    try:
        asked = Plant(service)
        asked.works(*EVERYTHING)
        asked.ready()
        wait_until(lambda: count_rows(service.caller("editor@t"), "press"), lambda stored: stored == 1, 60)
    finally:
        assert service.stop() == 0
