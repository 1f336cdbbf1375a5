"""Benchmark of the live stream of telemetry: its latency, and how much it slows down ingestion."""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import orjson
import uvloop

from bench.figures import Figure
from bench.ingest import BATCH, CONNECTIONS, EVENTS, build_messages, wait_for_rows
from bench.running import RunningService, post_bodies_and_measure_seconds, run_service

LISTENERS = 200
SOURCES = 10
EVENTS_PER_SECOND = 1_000
SECONDS = 10
POSTS_PER_SECOND = 10
_WORKSPACE = Path(__file__).with_name("live_workspace.yaml")
_DISABLED = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("live", "archive")}
_LATEST_SECONDS = 60.0


def measure_ingest_with_live() -> Iterator[Figure]:
    """Measure the ingestion rate without live stream, with a live stream without listeners, and with a listener."""
    modes = {"alone": (_DISABLED, False), "unheard": ({}, False), "beside": ({}, True)}
    rates: dict[str, list[float]] = {name: [] for name in modes}
    for _ in range(2):
        for name, (settings, with_listener) in modes.items():
            rates[name].append(_measure_ingested_events_per_second(settings, with_listener=with_listener))
    best = {name: max(measured) for name, measured in rates.items()}
    detail = {"events": EVENTS, **{f"{name}PerSecond": round(rate) for name, rate in best.items()}}
    yield Figure("ingest_with_live_unheard", best["unheard"] / best["alone"], "ratio", at_least=0.75, detail=detail)
    yield Figure("ingest_with_live", best["beside"] / best["alone"], "ratio", at_least=0.6, detail=detail)


def measure_live_stream() -> Iterator[Figure]:
    """Send telemetry of ten machines at a constant rate; measure the delays until 200 listeners receive the events.

    ``live_p99_with_start`` is the 99th percentile of all events, ``live_p99`` that of events after the first second.
    """
    heard = uvloop.run(_run_service_and_listeners())
    delays = sorted(delay for listener in heard for delay in listener.delays)
    # The first messages wait until the service has loaded its modules and opened its connections.
    first = EVENTS_PER_SECOND // SOURCES
    later = sorted(delay for listener in heard for delay in listener.delays[first:])
    due = LISTENERS // SOURCES * EVENTS_PER_SECOND * SECONDS
    wrong = sum(listener.numbers != list(range(len(listener.numbers))) for listener in heard)
    detail = {
        "listeners": LISTENERS,
        "eventsPerSecond": EVENTS_PER_SECOND,
        "deliveriesPerSecond": len(delays) / SECONDS,
        "medianMs": round(statistics.median(delays) * 1000, 1),
        "maxMs": round(delays[-1] * 1000, 1),
    }
    yield Figure("live_delivered", len(delays) / due, "ratio", at_least=1.0, at_most=1.0, detail=detail)
    yield Figure("live_out_of_order", wrong, "listeners", at_most=0, detail=detail)
    yield Figure("live_p99_with_start", _compute_p99_ms(delays), "ms", at_most=3_000, detail=detail)
    yield Figure("live_p99", _compute_p99_ms(later), "ms", at_most=120, detail=detail)


def _compute_p99_ms(sorted_delay_seconds: Sequence[float]) -> float:
    """Return the 99th percentile of sorted delays in seconds, in milliseconds."""
    return round(sorted_delay_seconds[int(len(sorted_delay_seconds) * 0.99)] * 1000, 1)


def _measure_ingested_events_per_second(settings: dict[str, str], *, with_listener: bool) -> float:
    bodies = [json.dumps(batch).encode() for batch in build_messages(EVENTS, BATCH)]
    with run_service(settings) as running:
        return (
            asyncio.run(_measure_events_per_second_with_listener(running, bodies))
            if with_listener
            else _measure_events_per_second_without_listener(running, bodies)
        )


def _measure_events_per_second_without_listener(running: RunningService, bodies: list[bytes]) -> float:
    started = time.perf_counter()
    post_bodies_and_measure_seconds(f"{running.url}/oi-api/telemetry/line", running.headers, bodies, CONNECTIONS)
    wait_for_rows(running, EVENTS)
    return EVENTS / (time.perf_counter() - started)


async def _measure_events_per_second_with_listener(running: RunningService, bodies: list[bytes]) -> float:
    listener = LiveStreamListener("line")
    async with aiohttp.ClientSession(headers=running.headers) as session:
        listening = asyncio.create_task(listener.listen(session, running.url, EVENTS))
        await listener.ready.wait()
        rate = await asyncio.to_thread(_measure_events_per_second_without_listener, running, bodies)
        listening.cancel()
        await asyncio.wait((listening,))
    return rate


@dataclass
class LiveStreamListener:
    """Listener to the live stream of one machine.

    Attributes:
        source: id of the machine's data connection in URLs.
        numbers: sequence numbers of the received telemetry events, in order of arrival.
        delays: seconds from the sending of each telemetry event to its arrival.
        ready: event that is set when the listener is connected.
    """

    source: str
    numbers: list[int] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, session: aiohttp.ClientSession, url: str, event_count: int) -> None:
        """Receive ``event_count`` telemetry events and record their sequence numbers and delays."""
        async with session.ws_connect(f"{url}/oi-api/live-stream?connection={self.source}", max_msg_size=0) as socket:
            self.ready.set()
            async for message in socket:
                payload = orjson.loads(message.data)["Payload"]
                if "sent" in payload:
                    self.delays.append(time.time() - payload["sent"])
                    self.numbers.append(payload["number"])
                event_count -= 1
                if event_count == 0:
                    return


async def _run_service_and_listeners() -> list[LiveStreamListener]:
    with run_service({"WORKSPACE_FILE": str(_WORKSPACE)}) as running:
        return await send_to_listeners(running, SECONDS)


async def send_to_listeners(running: RunningService, seconds: int) -> list[LiveStreamListener]:
    """Send telemetry at a constant rate while 200 clients listen; return the clients when they have all events.

    Raises:
        TimeoutError: events are missing after the time limit.
    """
    listeners = [LiveStreamListener(f"machine-{number % SOURCES}") for number in range(LISTENERS)]
    each = EVENTS_PER_SECOND // SOURCES * seconds
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=running.headers, connector=connector) as session:
        tasks = [asyncio.create_task(listener.listen(session, running.url, each)) for listener in listeners]
        await asyncio.gather(*(listener.ready.wait() for listener in listeners))
        await asyncio.gather(*(_send_telemetry(session, running.url, number, each) for number in range(SOURCES)))
        async with asyncio.timeout(_LATEST_SECONDS):
            await asyncio.gather(*tasks)
    return listeners


async def _send_telemetry(session: aiohttp.ClientSession, url: str, machine_number: int, message_count: int) -> None:
    """Send ``message_count`` messages of one machine; each batch contains the messages of a tenth of a second."""
    batch = EVENTS_PER_SECOND // SOURCES // POSTS_PER_SECOND
    started = asyncio.get_running_loop().time() + machine_number / SOURCES / POSTS_PER_SECOND
    for turn, first in enumerate(range(0, message_count, batch)):
        await asyncio.sleep(started + turn / POSTS_PER_SECOND - asyncio.get_running_loop().time())
        readings = [
            {"number": number, "sent": time.time(), "Pressure": 4.25, "Temperature": 71.5, "Current": 1.125}
            for number in range(first, first + batch)
        ]
        async with session.post(f"{url}/oi-api/telemetry/machine-{machine_number}", json=readings) as reply:
            reply.raise_for_status()
