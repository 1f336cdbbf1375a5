"""ASGI application: authentication, injected faults, routing and the request log."""

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

from emulators.cosmos import data_plane
from emulators.cosmos.account import AccountOptions
from emulators.cosmos.authentication import authenticate
from emulators.cosmos.control_plane import ControlPlane
from emulators.cosmos.faults import FaultInjector, FaultKind, InjectedFault
from emulators.cosmos.request_log import RequestLog
from emulators.cosmos.wire import (
    ITEM_WRITES,
    MAX_BYTES,
    CosmosError,
    CosmosReply,
    CosmosRequest,
    classify_request,
    unsupported,
)

type Scope = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
type Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_DROPS = (FaultKind.DROP_BEFORE_COMMIT, FaultKind.DROP_AFTER_COMMIT)


class CosmosApp:
    """Simulated account as an ASGI application.

    Args:
        key: The master key, base64.
        options: The options of the account.
        physical_partitions: The number of physical partitions of each container.
        latency: The delay before each request is executed, in seconds.
    """

    def __init__(self, key: str, options: AccountOptions, physical_partitions: int, latency: float) -> None:
        self.endpoint = ""
        self.latency = latency
        self.faults = FaultInjector()
        self.requests = RequestLog()
        self._key = key
        self._options = options
        self._control = ControlPlane(physical_partitions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI 3)."""
        request, oversized = await _read(scope, receive)
        started = time.perf_counter()
        fault = self.faults.select(request)
        reply = await self._reply(request, fault, oversized=oversized)
        if reply is None:
            self.requests.add(request, 0, 0, fault.kind if fault else None)
            _drop(scope, reset=bool(fault and fault.reset))
            return
        reply.headers |= self._common_headers(request, started)
        substatus = int(reply.headers.get("x-ms-substatus", "0"))
        self.requests.add(request, reply.status, substatus, fault.kind if fault else None)
        await _send(send, reply, scope if fault and fault.kind is FaultKind.DROP_IN_REPLY else None)

    async def _reply(
        self, request: CosmosRequest, fault: InjectedFault | None, *, oversized: bool
    ) -> CosmosReply | None:
        """Return the reply, None to drop the connection."""
        if self.latency:
            await asyncio.sleep(self.latency)
        if fault is not None and fault.kind is FaultKind.DELAY:
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind is FaultKind.DROP_BEFORE_COMMIT:
            return None
        try:
            authenticate(request, self._key, self._options)
            reply = self._injected_reply(request, fault) or self._answer(request, fault, oversized=oversized)
        except CosmosError as refusal:
            reply = refusal.reply()
        if fault is not None and fault.kind is FaultKind.DELAY_AFTER_COMMIT:
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind is FaultKind.DROP_AFTER_COMMIT:
            return None
        if fault is not None and fault.kind is FaultKind.STATUS_AFTER_COMMIT:
            return _fault_error(fault).reply()
        return reply

    def _injected_reply(self, request: CosmosRequest, fault: InjectedFault | None) -> CosmosReply | None:
        """Return the reply of a fault that replaces the execution of the request."""
        if fault is None:
            return None
        if fault.kind is FaultKind.STATUS:
            return _fault_error(fault).reply()
        if fault.kind is FaultKind.BATCH_STATUS:
            return data_plane.failed_batch_reply(request, _fault_error(fault))
        return None

    def _answer(self, request: CosmosRequest, fault: InjectedFault | None, *, oversized: bool) -> CosmosReply:
        """Execute a request. No step awaits, so each request is atomic."""
        if oversized:
            raise CosmosError(413, "Request size is too large")
        self._options.check_consistency(request)
        operation = request.operation
        if operation == "read_account":
            return CosmosReply(200, self._options.document(self.endpoint))
        if operation == "query_plan":
            return data_plane.plan_reply(request)
        if operation in ITEM_WRITES or operation in ("read_item", "query", "read_feed"):
            return self._data(request, fault)
        if operation == "list_offers":
            return self._control.query_offers(request)
        method = getattr(self._control, operation.replace("query_d", "list_d").replace("query_c", "list_c"), None)
        if operation == "unknown" or method is None:
            raise unsupported(f"{request.method} /{'/'.join(request.segments)}")
        reply: CosmosReply = method(request)
        return reply

    def _data(self, request: CosmosRequest, fault: InjectedFault | None) -> CosmosReply:
        container = self._control.container(request)
        if request.operation == "batch":
            reply = data_plane.batch_reply(container, request)
        elif request.operation in ("query", "read_feed"):
            partial = fault.page_size if fault and fault.kind is FaultKind.PARTIAL_PAGE else None
            reply = data_plane.query_reply(container, request, partial)
        else:
            reply = data_plane.item_reply(container, request)
        range_id = request.header("x-ms-documentdb-partitionkeyrangeid") or "0"
        link = "/".join(request.segments[:4])
        reply.headers |= {
            "x-ms-session-token": f"{range_id}:0#{container.lsn}",
            "x-ms-alt-content-path": link,
            "x-ms-content-path": container.rid,
            "lsn": str(container.lsn),
        }
        return reply

    def _common_headers(self, request: CosmosRequest, started: float) -> dict[str, str]:
        return {
            "content-type": "application/json",
            "date": formatdate(usegmt=True),
            "x-ms-activity-id": request.header("x-ms-activity-id"),
            "x-ms-gatewayversion": "version=cosmos-test-server",
            "x-ms-request-duration-ms": f"{(time.perf_counter() - started) * 1000:.3f}",
        }


def _fault_error(fault: InjectedFault) -> CosmosError:
    return CosmosError(fault.status, f"Injected: {fault.kind}", fault.substatus, fault.retry_after_ms)


async def _read(scope: Scope, receive: Receive) -> tuple[CosmosRequest, bool]:
    """Read the request; also return whether its body exceeds the limit."""
    raw: bytes = scope["raw_path"]
    segments = tuple(unquote(part) for part in raw.decode().split("/") if part)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        part: bytes = message.get("body", b"")
        size += len(part)
        parts.append(part if size <= MAX_BYTES else b"")
        more = message.get("more_body", False)
    operation = classify_request(scope["method"], segments, headers)
    return CosmosRequest(scope["method"], segments, headers, b"".join(parts), operation), size > MAX_BYTES


async def _send(send: Send, reply: CosmosReply, truncated: Scope | None) -> None:
    """Send a reply; with `truncated`, send half of it and drop the connection."""
    body = reply.encode_body()
    headers = [(name.encode(), value.encode("latin-1")) for name, value in reply.headers.items()]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if truncated is None:
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
    truncated["connection"].close()


def _drop(scope: Scope, *, reset: bool) -> None:
    """Close or reset the connection without a reply."""
    connection: asyncio.Transport = scope["connection"]
    if reset:
        raw = connection.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.abort()
