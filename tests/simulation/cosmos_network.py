"""Simulated network between the azure-cosmos SDK and a Cosmos DB account in the same process.

The SDK uses its own transport, which converts errors of aiohttp to errors of the SDK; only the session of aiohttp is
replaced. Time passes only on the clock of the caller: the running event loop, and the function that delivers messages
later.
"""

import asyncio
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Self, cast
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp.client_reqrep import ConnectionKey
from azure.core.pipeline.transport import AioHttpTransport
from azure.core.utils import CaseInsensitiveDict
from multidict import CIMultiDict

from emulators.cosmos import CosmosRequest, CosmosService
from emulators.cosmos.service import build_injected_error
from emulators.cosmos.wire import CosmosReply, get_operation_name
from tests.simulation.cosmos_faults import CosmosFaults, DrawnFault, NetworkFault

MICROSECONDS: Final = 1_000_000
_LONGEST_TRIP: Final = 3_000
_LONGEST_SLOW_TRIP: Final = 4 * MICROSECONDS
"""Cosmos DB ends a request after five seconds, so a later execution would not be possible."""

_LONGEST_SLOW_REPLY: Final = 15 * MICROSECONDS
_NO_REPLY: Final = frozenset({NetworkFault.REPLY_SILENT, NetworkFault.OVERTAKEN})
_LATE: Final = frozenset({NetworkFault.SLOW, NetworkFault.OVERTAKEN})

type Deliver = Callable[[int, Callable[[], None]], None]
"""Calls a function after a number of microseconds, whether or not the process that sent the message still lives."""

type Outcome = CosmosReply | Exception
type Respond = Callable[[Outcome], None]


class CosmosNetwork:
    """Simulated network that delivers requests of processes to one account, with delays and faults.

    Args:
        service: the account.
        deliver: delivers messages later.
        source: source of all decisions.
        faults: probabilities of faults.
        trace: receives a line for each request and each reply.
    """

    def __init__(
        self,
        service: CosmosService,
        deliver: Deliver,
        source: random.Random,
        faults: CosmosFaults,
        trace: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.service = service
        self.faults = faults
        self._deliver = deliver
        self._random = source
        self._trace = trace

    def create_transport(self, sender: str) -> AioHttpTransport:
        """Return a transport for one client of the azure-cosmos SDK.

        Args:
            sender: name of the process, for the trace.
        """
        session = _Session(lambda request, respond: self._send_request(sender, request, respond))
        return AioHttpTransport(session=cast("aiohttp.ClientSession", session))

    def _send_request(self, sender: str, request: CosmosRequest, respond: Respond) -> None:
        fault = self.faults.draw_fault(self._random, request)
        label = f"{sender} cosmos {request.operation} {request.container_name_or_rid or ''}"
        self._trace(" ".join(filter(None, [label, fault.name])))
        trip = self._draw_travel_time(_LONGEST_SLOW_TRIP if fault.network in _LATE else _LONGEST_TRIP)
        match fault.network:
            case NetworkFault.REFUSED:
                self._deliver(trip, lambda: respond(_build_refused_connection_error()))
            case NetworkFault.LOST:
                self._deliver(trip, lambda: respond(_build_lost_connection()))
            case NetworkFault.SILENT:
                pass
            case _:
                self._deliver(trip, lambda: self._execute_request(label, request, fault, respond))
        if fault.network is NetworkFault.OVERTAKEN:
            self._deliver(self._draw_travel_time(trip), lambda: respond(_build_lost_connection()))
        if fault.network is NetworkFault.TWICE:
            self._deliver(trip + self._draw_travel_time(_LONGEST_TRIP), lambda: self._repeat_request(label, request))

    def _draw_travel_time(self, longest: int) -> int:
        return int(self._random.random() * longest)

    def _repeat_request(self, label: str, request: CosmosRequest) -> None:
        self._trace(f"{label} again -> {self.service.execute(request).status}")

    def _execute_request(self, label: str, request: CosmosRequest, fault: DrawnFault, respond: Respond) -> None:
        reply = self.service.execute(request, fault.injected)
        self._trace(f"{label} -> {reply.status}")
        outcome: Outcome = reply
        if fault.network in _NO_REPLY:
            return
        if fault.network is NetworkFault.STATUS_AFTER and fault.injected is not None:
            outcome = build_injected_error(fault.injected).build_reply()
        elif fault.network is NetworkFault.REPLY_LOST:
            outcome = _build_lost_connection()
        elif fault.network is NetworkFault.REPLY_CUT:
            outcome = aiohttp.ClientPayloadError("Response payload is not completed")
        longest = _LONGEST_SLOW_REPLY if fault.network is NetworkFault.SLOW else _LONGEST_TRIP
        self._deliver(self._draw_travel_time(longest), lambda: respond(outcome))


class _Session:
    """Replacement of aiohttp's session that sends each request once, over the simulated network."""

    auto_decompress = False

    def __init__(self, send: Callable[[CosmosRequest, Respond], None]) -> None:
        self._send = send

    async def __aenter__(self) -> Self:
        return self

    async def close(self) -> None:
        """Do nothing, because no connection is open."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: CaseInsensitiveDict,
        data: str | bytes | None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  signature of aiohttp
        **_: Any,
    ) -> "_Response":
        """Send a request over the simulated network and return its response."""
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[Outcome] = loop.create_future()
        self._send(_parse_request(method, url, headers, data), lambda outcome: _resolve_in_loop(loop, arrived, outcome))
        try:
            async with asyncio.timeout(timeout.sock_read):
                outcome = await arrived
        except TimeoutError as error:
            raise aiohttp.SocketTimeoutError(f"Timeout on reading data from socket: {url}") from error
        return _Response(outcome)


class _Response:
    """Replacement of aiohttp's response, whose body is complete or truncated."""

    reason = ""

    def __init__(self, outcome: Outcome) -> None:
        if isinstance(outcome, Exception) and not isinstance(outcome, aiohttp.ClientPayloadError):
            raise outcome
        self._outcome = outcome
        self.status = outcome.status if isinstance(outcome, CosmosReply) else 200
        self.headers = CIMultiDict(outcome.headers if isinstance(outcome, CosmosReply) else {})

    async def read(self) -> bytes:
        """Return the body; raise an error if it is truncated."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome.encode_body()


@lru_cache(maxsize=10_000)
def _split_path(url: str) -> tuple[str, ...]:
    return tuple(unquote(part) for part in urlsplit(url).path.split("/") if part)


def _parse_request(method: str, url: str, headers: CaseInsensitiveDict, data: str | bytes | None) -> CosmosRequest:
    segments = _split_path(url)
    lower = {name: str(value) for name, value in headers.lowerkey_items()}
    body = data.encode() if isinstance(data, str) else data or b""
    return CosmosRequest(method, segments, lower, body, get_operation_name(method, segments, lower))


def _resolve_in_loop(loop: asyncio.AbstractEventLoop, arrived: asyncio.Future[Outcome], outcome: Outcome) -> None:
    def resolve_in_loop() -> None:
        if not arrived.done():
            arrived.set_result(outcome)

    # Outside of the process's own callbacks, its loop is not the running one.
    loop.call_soon(resolve_in_loop)


def _build_lost_connection() -> Exception:
    """Return the error that aiohttp raises if a connection closes without a reply."""
    return aiohttp.ClientConnectionError("the connection was lost")


def _build_refused_connection_error() -> Exception:
    key = ConnectionKey(
        "cosmos.example", 443, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None
    )
    return aiohttp.ClientConnectorError(key, ConnectionRefusedError(111, "Connection refused"))
