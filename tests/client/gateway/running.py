"""Helpers that run a gateway in the event loop of a test, with a fake service."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from oi.errors import ApiError
from oi.gateway.deliveries import Delivery
from oi.gateway.gateway import run_gateway
from oi.gateway.metrics import Metrics
from oi.gateway.sections import Section
from oi.gateway.settings import GatewaySettings, parse_gateway_settings

WAIT_SECONDS = 60


class FakeService:
    """Fake service of the gateway, which stores the messages of each connection by id."""

    def __init__(self) -> None:
        self.error: ApiError | None = None
        self.stored: dict[str, dict[str, dict[str, Any]]] = {}
        self.requests = 0
        self._changed = asyncio.Condition()

    async def send(self, lookup: str, ndjson_lines: bytes) -> None:
        """Store the messages, or raise the error that the test has set."""
        self.requests += 1
        if self.error is not None:
            raise self.error
        stored = self.stored.setdefault(lookup, {})
        for line in ndjson_lines.splitlines():
            message = json.loads(line)
            stored.setdefault(message["messageId"], message)
        async with self._changed:
            self._changed.notify_all()

    def read_messages(self, lookup: str) -> list[dict[str, Any]]:
        """Return the stored messages of a connection in the order in which they arrived."""
        return list(self.stored.get(lookup, {}).values())

    async def wait_for_messages(self, lookup: str, count: int) -> list[dict[str, Any]]:
        """Wait until a connection has this number of messages, and return them."""
        async with asyncio.timeout(WAIT_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.read_messages(lookup)) >= count)
        return self.read_messages(lookup)


class DroppingReceiver:
    """Fake of the gateway's receiver, which drops all messages."""

    is_full = False

    def __init__(self) -> None:
        self.taken: list[Delivery] = []

    def call_when_not_full(self, function: Any) -> None:
        """Do nothing, because the receiver is never full."""

    def accept_delivery(self, delivery: Delivery) -> None:
        """Drop the message."""
        self.taken.append(delivery)


class EmptyMarkStore:
    """Fake store of delivery marks (received packet ids) that is always empty."""

    async def read_marks(self) -> list[bytes]:
        """Return no marks."""
        return []

    async def clear_marks(self) -> None:
        """Do nothing, because this fake store never has marks."""

    @property
    def acknowledged_position(self) -> int:
        """Return the same number always, because no marks are stored."""
        return 0

    def forget_marks_up_to(self, position: int) -> None:
        """Do nothing, because no marks are stored."""


def build_settings(folder: Path, port: int, name: str, **source: Any) -> GatewaySettings:
    """Return gateway settings with this client id and with topics whose first level is this name."""
    return parse_gateway_settings(Section(build_configuration(folder, port, name, **source)))


def build_configuration(folder: Path, port: int, name: str, **source: Any) -> dict[str, Any]:
    """Return the content of a gateway's configuration file."""
    return {
        "service": {"url": "http://127.0.0.1:1"},
        "source": {"kind": "mqtt", "host": "127.0.0.1", "port": port, "clientId": name, **source},
        "routes": [{"topic": f"{name}/{{line}}/{{device}}", "connection": "{line}", "device": "{device}"}],
        "spool": {"path": str(folder / f"{name}.db")},
        "metrics": {"port": 0},
    }


@asynccontextmanager
async def open_gateway(settings: GatewaySettings, service: FakeService) -> AsyncIterator[Metrics]:
    """Run a gateway for the duration of the block; yield its metrics as soon as it is connected."""
    metrics = Metrics()
    task = asyncio.create_task(run_gateway(settings, metrics=metrics, upstream=service))
    try:
        await wait_for_count(metrics, "connections_total", 1, task)
        yield metrics
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def wait_for_count(metrics: Metrics, metric: str, count: int, task: "asyncio.Task[None] | None" = None) -> None:
    """Wait until a metric has the given value; fail if the task of the gateway ends before."""
    async with asyncio.timeout(WAIT_SECONDS):
        while sum_counts(metrics, metric) < count:
            await asyncio.sleep(0.01)
            if task is not None and task.done():
                task.result()


def sum_counts(metrics: Metrics, metric: str) -> float:
    """Return the sum of the counter's values over all labels."""
    lines = (line for line in metrics.format_prometheus_text().splitlines() if line.startswith(f"oi_gateway_{metric}"))
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def encode_message(**message: Any) -> bytes:
    """Return a message as JSON bytes, as a device sends it."""
    return json.dumps(message).encode()


def remove_metadata(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored message without the metadata properties that the gateway added."""
    return {name: value for name, value in message.items() if name not in {"messageId", "timestamp", "deviceId"}}
