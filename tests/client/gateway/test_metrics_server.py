"""Tests of the gateway's HTTP server for metrics."""

import asyncio
from typing import Any

import pytest
from oi.gateway.metrics import Metrics
from oi.gateway.metrics_server import HOST, start_metrics_server


async def send_request(port: int, text: bytes) -> str:
    """Send a request and return the reply."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(text)
    reply = await reader.read()
    writer.close()
    return reply.decode()


@pytest.mark.parametrize(
    ("line", "status"), [("GET /metrics HTTP/1.1", 200), ("GET / HTTP/1.1", 404), ("POST /metrics HTTP/1.1", 405)]
)
async def test_only_get_metrics_returns_the_metrics(line: str, status: int) -> None:
    """GET /metrics returns the metrics; other paths and methods are rejected."""
    metrics = Metrics()
    metrics.increase_counter("rejected_messages_total", 2, 'reason="not_json"')
    metrics.set_gauge("spool_blocked", 0)
    server = await start_metrics_server(metrics, 0)
    socket: Any = server.sockets[0]
    reply = await send_request(socket.getsockname()[1], f"{line}\r\nHost: x\r\n\r\n".encode())
    server.close()
    assert reply.startswith(f"HTTP/1.1 {status} ")
    if status == 200:
        assert '\noi_gateway_rejected_messages_total{reason="not_json"} 2\n' in reply
        assert "\n# TYPE oi_gateway_spool_blocked gauge\noi_gateway_spool_blocked 0\n" in reply
        assert "\noi_gateway_sent_messages_total 0\n" in reply
