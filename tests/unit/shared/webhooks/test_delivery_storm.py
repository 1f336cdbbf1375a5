"""Tests that each event is delivered once, although processes are killed and endpoints fail."""

import asyncio
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared.alerts.models import Alert
from shared.alerts.ports import AlertFilter
from shared.webhooks.events import WebhookEventType
from shared.webhooks.models import Delivery, DeliveryStatus, WebhookEndpoint, build_delivery_id
from shared.webhooks.service import EndpointDefinition
from tests.unit.shared.webhooks.storm_process import ATTEMPTS, AlertAndWebhookServices, open_services

ROOT = Path(__file__).parents[4]
SCRIPT = Path(__file__).with_name("storm_process.py")
FIRING, RESOLVED = WebhookEventType.ALERT_FIRING, WebhookEventType.ALERT_RESOLVED
DRAIN_SECONDS = 180
LEAST_KILLS = 1
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1_024 + b"\r\n"
FAULTS = (
    b"HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nno",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/internal\r\nContent-Length: 0\r\n\r\n",
    b"",  # closes the connection
    b"this is not HTTP\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-Huge: " + b"x" * 100_000 + b"\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\nshorter than announced",
    b"HTTP/1.1 200",  # stops within the status line, and then waits
)
GONE = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"
BROKEN = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


class FailingEndpoints:
    """Server of numbered webhook endpoints, most of which fail; it records the messages.

    Attributes:
        number: number of endpoints; the last one always fails, and the last but one is gone after three messages.
        attempts: number of requests by endpoint and id of the message.
        accepted: endpoints and ids of messages that got a success.
        ids: ids by endpoint, event type and alert.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.attempts: Counter[tuple[int, str]] = Counter()
        self.accepted: set[tuple[int, str]] = set()
        self.ids: dict[tuple[int, str, str], set[str]] = defaultdict(set)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Receive one request and reply."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
            event = json.loads(await reader.readexactly(int(headers["content-length"])))
            endpoint, message = int(head[0].split()[1].removeprefix("/")), headers["webhook-id"]
            self.ids[endpoint, event["type"], event["data"]["alertId"]].add(message)
            self.attempts[endpoint, message] += 1
            await self._reply(writer, endpoint, message)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the process was killed
        finally:
            writer.close()

    async def _reply(self, writer: asyncio.StreamWriter, endpoint: int, message: str) -> None:
        content = self._choose_reply(endpoint, message)
        if content in (OK, ENDLESS):
            self.accepted.add((endpoint, message))
        writer.write(content)
        await writer.drain()
        if content == FAULTS[-1]:
            await asyncio.sleep(1)

    def _choose_reply(self, endpoint: int, message: str) -> bytes:
        if endpoint == self.number - 1:
            return BROKEN
        if endpoint == self.number - 2 and len({one for number, one in self.attempts if number == endpoint}) > 3:
            return GONE
        if endpoint % 5 and self.attempts[endpoint, message] <= 1 + endpoint % 3:
            return FAULTS[endpoint % len(FAULTS)]
        return ENDLESS if endpoint % 5 == 1 else OK


@dataclass(frozen=True)
class CrashTest:
    """Size of a crash test with many deliveries.

    Attributes:
        seconds: minimum duration; each process is killed at least once.
        endpoints: number of endpoints.
        devices: number of devices, each with an alert of its own.
        period: seconds between two changes of a value.
        life: maximum seconds of a process after its start.
    """

    seconds: float
    endpoints: int
    devices: int
    period: float
    life: float


SHORT = CrashTest(seconds=1.0, endpoints=10, devices=2, period=0.3, life=1.0)
LONG = CrashTest(seconds=60.0, endpoints=50, devices=3, period=3.0, life=5.0)


@asynccontextmanager
async def serve_endpoints(endpoints: FailingEndpoints) -> AsyncIterator[int]:
    """Serve the endpoints on a free port; yield the port."""
    server = await asyncio.start_server(endpoints.handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def start_process(folder: Path, devices: int, period: float, mode: str) -> asyncio.subprocess.Process:
    """Start a process that evaluates the rule and sends the events, and wait until it is ready."""
    arguments = [str(SCRIPT), str(folder), str(devices), str(period), mode]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


async def run_and_kill(crash_test: CrashTest, folder: Path, ends_at: float, random_source: random.Random) -> None:
    """Run processes one after another, and kill each after a random time."""
    kills = 0
    while asyncio.get_running_loop().time() < ends_at or kills < LEAST_KILLS:
        process = await start_process(folder, crash_test.devices, crash_test.period, "storm")
        await asyncio.sleep(random_source.uniform(0.1, crash_test.life))
        assert process.returncode is None, "a process ended although it was not killed"
        process.kill()
        await process.wait()
        kills += 1


async def send_remaining_deliveries(folder: Path, devices: int) -> None:
    """Let one process send all remaining deliveries."""
    process = await start_process(folder, devices, 1.0, "drain")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            assert await process.stdout.readline() == b"drained\n"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def create_endpoints(webhook_services: AlertAndWebhookServices, number: int, port: int) -> list[WebhookEndpoint]:
    """Create the given number of webhook endpoints, with their numbers as paths of the URLs."""
    types = (FIRING, RESOLVED)
    definitions = [EndpointDefinition(f"http://127.0.0.1:{port}/{each}", types) for each in range(number)]
    return [(await webhook_services.service.create("admin@t", each)).endpoint for each in definitions]


async def list_alerts(webhook_services: AlertAndWebhookServices) -> list[Alert]:
    """Return all alerts; check that each has fired and was resolved."""
    return list(await webhook_services.alerts.list_alerts(AlertFilter(), None, 100_000))


def check_endpoint(number: int, found: list[Delivery], wanted: set[str], server: FailingEndpoints) -> None:
    """Check that an endpoint has one ended delivery per event, with the status that the server's replies require."""
    assert {each.id for each in found} == wanted
    assert len(found) == len(wanted)
    for delivery in found:
        if number == server.number - 1:
            assert (delivery.status, len(delivery.attempts)) == (DeliveryStatus.FAILED, ATTEMPTS)
        else:
            assert delivery.status is DeliveryStatus.DELIVERED
            assert (number, delivery.id) in server.accepted


@pytest.mark.parametrize("crash_test", [SHORT, pytest.param(LONG, marks=pytest.mark.soak)], ids=["short", "long"])
async def test_no_event_is_lost(tmp_path: Path, crash_test: CrashTest) -> None:
    """Each change of an alert's state causes one delivery per endpoint, which has the same id until it ends."""
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201  shown when it fails
    random_source, server = random.Random(seed), FailingEndpoints(crash_test.endpoints)
    async with serve_endpoints(server) as port, open_services(tmp_path) as webhook_services:
        endpoints = await create_endpoints(webhook_services, crash_test.endpoints, port)
        ends_at = asyncio.get_running_loop().time() + crash_test.seconds
        await asyncio.gather(*(run_and_kill(crash_test, tmp_path, ends_at, random_source) for _ in range(2)))
        await send_remaining_deliveries(tmp_path, crash_test.devices)
        alerts = await list_alerts(webhook_services)
        assert alerts
        keys = {(kind.value, alert.id): f"{kind}/{alert.id}" for alert in alerts for kind in (FIRING, RESOLVED)}
        for index, endpoint in enumerate(endpoints):
            ids = {key: build_delivery_id(endpoint.id, text) for key, text in keys.items()}
            arrived = {key[1:]: found for key, found in server.ids.items() if key[0] == index}
            assert all(found == {ids[key]} for key, found in arrived.items())
            if index != crash_test.endpoints - 2:
                found = list(await webhook_services.store.list_deliveries(endpoint.id, None, None, 100_000))
                check_endpoint(index, found, set(ids.values()), server)
    sent, different = sum(server.attempts.values()), len(server.attempts)
    print(f"{len(alerts)} alerts, {different} messages, {sent} requests")  # noqa: T201  shown when it fails
