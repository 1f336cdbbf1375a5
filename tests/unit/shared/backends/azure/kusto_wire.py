"""Fake Kusto endpoint with prepared replies, and helpers that send queries to it with the adapter."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest

from shared.backends.azure.kusto import KustoEngine
from shared.errors import WorkspaceError
from shared.warm_queries.ports import EngineQuery, EngineResult

QUERY = EngineQuery("line one is ours\nT | take 1", {"p": "long(1)"}, 11, 30, cache_seconds=60, lines_before=1)
PRIMARY: dict[str, Any] = {
    "FrameType": "DataTable",
    "TableId": 0,
    "TableKind": "PrimaryResult",
    "TableName": "PrimaryResult",
    "Columns": [{"ColumnName": "n", "ColumnType": "long"}],
    "Rows": [[1], [2]],
}
END: dict[str, Any] = {"FrameType": "DataSetCompletion", "HasErrors": False, "Cancelled": False}


class Endpoint:
    """Fake Kusto endpoint that sends the same reply to each query and records the requests."""

    def __init__(self) -> None:
        self.status, self.reply = 200, b""
        self.asked: dict[str, Any] = {}
        self.requests = 0
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.requests += 1
                endpoint.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(endpoint.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(endpoint.reply)))
                self.end_headers()
                self.wfile.write(endpoint.reply)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def set_reply(self, value: Any, status: int = 200) -> None:
        """Set the reply that the endpoint sends to each query."""
        self.status, self.reply = status, json.dumps(value).encode()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Return a running fake Kusto endpoint."""
    with Endpoint() as running:
        yield running


def build_failure(code: str, message: str, *, permanent: bool = True) -> dict[str, Any]:
    """Return the error document of a failed query."""
    return {"error": {"code": code, "message": "short", "@message": message, "@type": code, "@permanent": permanent}}


async def get_query_error(endpoint: Endpoint, query: EngineQuery = QUERY) -> WorkspaceError:
    """Return the error that the adapter raises for a query."""
    engine = KustoEngine(endpoint.url, "db")
    try:
        with pytest.raises(WorkspaceError) as refused:
            await engine.execute(query)
    finally:
        await engine.close()
    return refused.value


async def execute_query(endpoint: Endpoint) -> EngineResult:
    """Return the result that the adapter returns for a query."""
    engine = KustoEngine(endpoint.url, "db")
    try:
        return await engine.execute(QUERY)
    finally:
        await engine.close()
