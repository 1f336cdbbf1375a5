"""Tests of GraphQL errors while the query engine fails; a stub server replaces the engine."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service

ADDRESS = "/v1/plant-t/graphql"
RUN = 'mutation { executeQuery(name: "per-minute") { rows } }'
COLUMNS = '{ query(name: "per-minute") { name schema { columns { name } } } }'


class _Engine(BaseHTTPRequestHandler):
    status = 503

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps({"error": {"code": "x", "message": "secret of the inside", "@permanent": False}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815  the library's name

    def log_message(self, *_: Any) -> None:
        """Disable the request log."""


@pytest.fixture(scope="module")
def service_with_failing_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service whose query engine is a stub; the stub replies with the status in ``_Engine.status``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Engine)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = {"KUSTO_URI": f"http://127.0.0.1:{server.server_port}"}
    data: Path = tmp_path_factory.mktemp("failing") / "data"
    running = Service(data, WORKSPACE, address).start()
    yield running
    running.stop()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "extensions"),
    [
        (429, {"code": "RATE_LIMITED"}),
        (500, {"code": "INTERNAL_ERROR", "reason": "QUERY_ENGINE_UNAVAILABLE"}),
        (503, {"code": "INTERNAL_ERROR", "reason": "QUERY_ENGINE_UNAVAILABLE"}),
    ],
)
def test_graphql_errors_about_engine_failures_have_a_code(
    service_with_failing_engine: Service, status: int, extensions: dict[str, str]
) -> None:
    """A throttling engine causes RATE_LIMITED and a failing engine INTERNAL_ERROR, both without internal details."""
    _Engine.status = status
    reply = service_with_failing_engine.create_client("viewer@t").post(ADDRESS, json={"query": RUN})
    [error] = reply.json()["errors"]
    assert (reply.status_code, error["path"], error["extensions"]) == (200, ["executeQuery"], extensions)
    assert error["message"]
    assert "secret" not in reply.text


def test_the_field_columns_has_an_error_while_the_engine_is_down(service_with_failing_engine: Service) -> None:
    """While the engine is down, the field for a query's columns has an error with path and reason."""
    _Engine.status = 503
    body = service_with_failing_engine.create_client("viewer@t").post(ADDRESS, json={"query": COLUMNS}).json()
    [error] = body["errors"]
    assert error["path"] == ["query", "schema"]
    assert error["extensions"] == {"code": "INTERNAL_ERROR", "reason": "QUERY_ENGINE_UNAVAILABLE"}
    assert body["data"] == {"query": {"name": "Pump rig per minute", "schema": {"columns": []}}}
