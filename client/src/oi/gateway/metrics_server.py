"""HTTP server for the gateway's metrics, which only programs on this machine can reach."""

import asyncio
from contextlib import suppress

from oi.gateway.metrics import Metrics

HOST = "127.0.0.1"
_READ_SECONDS = 10
_MAX_HEADERS = 100


async def start_metrics_server(metrics: Metrics, port: int) -> asyncio.Server:
    """Serve the metrics as ``GET /metrics`` on 127.0.0.1.

    Raises:
        OSError: the port is in use.
    """

    async def reply_to_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that sends too slowly, too much, or that disconnects gets no reply.
        with suppress(TimeoutError, ValueError, OSError):
            async with asyncio.timeout(_READ_SECONDS):
                writer.write(_build_http_reply(await _read_request_line(reader), metrics))
                await writer.drain()
        writer.close()

    return await asyncio.start_server(reply_to_request, HOST, port)


async def _read_request_line(reader: asyncio.StreamReader) -> str:
    first = await reader.readline()
    for _ in range(_MAX_HEADERS):
        if not (await reader.readline()).strip():
            break
    return first.decode("latin-1").strip()


def _build_http_reply(request_line: str, metrics: Metrics) -> bytes:
    method, _, rest = request_line.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if path != "/metrics":
        status, body = "404 Not Found", "The metrics are at /metrics.\n"
    elif method != "GET":
        status, body = "405 Method Not Allowed", "Use GET.\n"
    else:
        status, body = "200 OK", metrics.format_prometheus_text()
    content = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode() + content
