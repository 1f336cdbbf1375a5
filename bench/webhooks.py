"""Benchmark of webhooks: events per second to one endpoint, and time from a telemetry message to its alert event."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import aiohttp
from aiohttp import web

from bench.figures import Figure
from bench.large_workspace import UNLIMITED_WORKSPACE
from bench.running import RunningService, request_token, run_service

EVENTS: Final = 3_000
RULES: Final = 40
CROSSINGS: Final = 4
TIMEOUT_SECONDS: Final = 120.0
_BATCH: Final = 500
_APPROVAL: Final = {"approvedBy": "admin@bench", "approvedAt": "2026-01-05T08:00:00Z"}
_KQL: Final = """Telemetry
| where DeviceId startswith prefix
| summarize arg_max(Timestamp, Payload) by DeviceId
| project DeviceId, level = todouble(Payload.level)"""
_DOCUMENT: Final[dict[str, Any]] = {
    **UNLIMITED_WORKSPACE,
    "connections": [{"lookup": "line", "name": "Line", "type": "CLOUD_EVENT_HUB"}],
    "surfaces": [{"lookup": "hall", "name": "Hall", "connections": ["line"]}],
    "warmQueries": [
        {
            "lookup": "levels",
            "name": "Levels",
            "surface": "hall",
            "parameters": [{"name": "prefix", "type": "string"}],
            "kql": _KQL,
            "approval": _APPROVAL,
        }
    ],
}


class WebhookRecorder:
    """Endpoint of a local HTTP server for webhooks, which records when each event arrives.

    Attributes:
        times: time of each arrival in seconds of ``time.perf_counter``, in order.
        url: URL of the endpoint.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self.url = ""
        self._changed = asyncio.Event()

    async def record_arrival(self, request: web.Request) -> web.Response:
        """Record the arrival of an event and reply with status 204."""
        await request.read()
        self.times.append(time.perf_counter())
        self._changed.set()
        return web.Response(status=204)

    async def wait_for_arrival_times(self, event_count: int) -> Sequence[float]:
        """Wait until at least ``event_count`` events have arrived; return the times of all arrivals so far.

        Raises:
            TimeoutError: the events have not arrived within the time limit.
        """
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(self.times) < event_count:
                self._changed.clear()
                await self._changed.wait()
        return self.times


@asynccontextmanager
async def _run_webhook_endpoint() -> AsyncIterator[WebhookRecorder]:
    arrivals = WebhookRecorder()
    app = web.Application()
    app.router.add_post("/", arrivals.record_arrival)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        arrivals.url = f"http://127.0.0.1:{port}/"
        yield arrivals
    finally:
        await runner.cleanup()


def measure_webhooks() -> Iterator[Figure]:
    """Measure the rate of webhook events when many alerts fire at once, and the delay of single alerts.

    The rules of the single alerts are evaluated every 15 seconds.
    """
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        document = Path(folder) / "workspace.yaml"
        document.write_text(json.dumps(_DOCUMENT), encoding="utf-8")
        with run_service({"WORKSPACE_FILE": str(document)}) as running:
            rate, delays = asyncio.run(_measure_event_rate_and_delays(running))
    yield Figure("webhook_delivery_rate", rate, "1/s", at_least=200, detail={"events": EVENTS, "endpoints": 1})
    p95 = quantiles(delays, n=20)[-1]
    detail = {"rules": RULES, "events": len(delays), "longest": round(max(delays), 2)}
    yield Figure("alert_arrival_p95", p95, "s", at_most=17, detail=detail)


class _RateAndDelays(NamedTuple):
    """Webhook events per second when many alerts fire at once, and the delays of single events in seconds."""

    events_per_second: float
    delay_seconds: list[float]


async def _measure_event_rate_and_delays(running: RunningService) -> _RateAndDelays:
    token = request_token(running.url, running.folder, "admin@bench")
    headers = {"Authorization": f"Bearer {token}"}
    async with _run_webhook_endpoint() as arrivals, aiohttp.ClientSession(running.url, headers=headers) as session:
        webhook = {"url": arrivals.url, "eventTypes": ["alert.firing", "alert.resolved"]}
        await _send_request_and_get_json(session, "POST", "/oi-api/webhooks", webhook)
        rate = await _measure_events_per_second(session, arrivals)
        return _RateAndDelays(rate, await _measure_event_delay_seconds(session, arrivals))


async def _measure_events_per_second(session: aiohttp.ClientSession, arrivals: WebhookRecorder) -> float:
    """Let one evaluation of a rule fire alerts for 3,000 devices at once; return the webhook events per second."""
    await _send_level_messages(session, [f"many-{number}" for number in range(EVENTS)], 9.0)
    await _wait_for_rows(session, "many", EVENTS)
    await _put_alert_rule(session, "many", {"prefix": "many"}, "P1D", "PT1H")
    times = await arrivals.wait_for_arrival_times(EVENTS)
    return (EVENTS - 1) / (times[EVENTS - 1] - times[0])


async def _measure_event_delay_seconds(session: aiohttp.ClientSession, arrivals: WebhookRecorder) -> list[float]:
    """Return the delay in seconds from each message above the alert limit to the webhook event of each rule.

    Rules with different time ranges are due at different times, so that messages arrive at different moments of the
    evaluation interval.
    """
    await _send_level_messages(session, ["one"], 1.0)
    await _wait_for_rows(session, "one", 1)
    for number in range(RULES):
        await _put_alert_rule(session, f"one-{number}", {"prefix": "one"}, "PT15S", f"PT{3_600 + number}S")
    delays: list[float] = []
    for crossing in range(CROSSINGS):
        before = len(arrivals.times)
        started = time.perf_counter()
        await _send_level_messages(session, ["one"], 1.0 if crossing % 2 else 9.0)
        delays += [at - started for at in (await arrivals.wait_for_arrival_times(before + RULES))[before:]]
    return delays


async def _send_level_messages(session: aiohttp.ClientSession, device_ids: Sequence[str], level: float) -> None:
    now = datetime.now(UTC).isoformat()
    messages = [{"timestamp": now, "deviceId": device, "level": level} for device in device_ids]
    for first in range(0, len(messages), _BATCH):
        await _send_request_and_get_json(session, "POST", "/oi-api/telemetry/line", messages[first : first + _BATCH])


async def _wait_for_rows(session: aiohttp.ClientSession, device_prefix: str, row_count: int) -> None:
    path = f"/oi-api/warm-queries/levels?p.prefix={device_prefix}&limit=10000"
    deadline = time.perf_counter() + TIMEOUT_SECONDS
    while len((await _send_request_and_get_json(session, "GET", path))["results"]) < row_count:
        if time.perf_counter() > deadline:
            raise TimeoutError(f"fewer than {row_count} rows are stored after {TIMEOUT_SECONDS} s")
        await asyncio.sleep(0.2)


async def _put_alert_rule(
    session: aiohttp.ClientSession, lookup: str, parameters: dict[str, str], interval: str, time_range: str
) -> None:
    rule = {
        "name": lookup,
        "severity": "info",
        "surface": "hall",
        "kind": "threshold",
        "every": interval,
        "query": "levels",
        "parameters": parameters,
        "timeRange": time_range,
        "condition": {"column": "level", "operator": "gt", "value": 5},
        "groupBy": ["DeviceId"],
    }
    await _send_request_and_get_json(session, "PUT", f"/oi-api/alert-rules/{lookup}", rule)


async def _send_request_and_get_json(
    session: aiohttp.ClientSession, method: str, path: str, body: object = None
) -> Any:
    async with session.request(method, path, json=body) as reply:
        if not reply.ok:
            raise RuntimeError(f"{method} {path} returned status {reply.status}: {await reply.text()}")
        return await reply.json()
