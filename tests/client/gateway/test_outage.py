"""Test of a long outage of the service."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from oi.errors import UnreachableError
from oi.gateway import sender as module
from oi.gateway.clock import ReceiveClock
from oi.gateway.deliveries import Delivery
from oi.gateway.intake import Intake
from oi.gateway.metrics import Metrics
from oi.gateway.routes import Routes, parse_route
from oi.gateway.sections import Section
from oi.gateway.sender import Sender
from oi.gateway.settings import STOP, SpoolSettings
from oi.gateway.spool import GatewaySpool
from oi.gateway.spool_thread import SpoolThread

from tests.client.gateway.running import wait_for_count

DEVICES = 50
HOUR = 3_600_000
"""Messages of one hour at 1,000 a second."""


class OrderCheckingService:
    """Fake service that checks the order of each device's messages and stores only the last number of each device."""

    def __init__(self) -> None:
        self.is_down = True
        self.last: dict[bytes, int] = {}
        self.count = 0

    async def send(self, lookup: str, ndjson_lines: bytes) -> None:
        """Check that a batch continues the order of each device."""
        assert lookup == "press"
        if self.is_down:
            raise UnreachableError("down")
        for line in ndjson_lines.splitlines():
            head, _, number = line.rpartition(b'"n":')
            device = head.split(b'"deviceId":"')[1].partition(b'"')[0]
            value = int(number[:-1])
            assert value == self.last.get(device, -1) + 1
            self.last[device] = value
            self.count += 1


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SpoolThread]:
    """Yield an empty spool (file of waiting messages)."""
    thread = SpoolThread(GatewaySpool(SpoolSettings(tmp_path / "spool.db", 2**40, STOP)))
    yield thread
    thread.close()


@pytest.mark.parametrize("count", [5_000, pytest.param(HOUR, marks=pytest.mark.soak)])
async def test_messages_of_an_hour_without_the_service_are_sent_later(
    spool: SpoolThread, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Messages that arrive during an hour without the service are sent afterwards, once and in order."""
    monkeypatch.setattr(module, "_LONGEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(module, "_FIRST_PAUSE_SECONDS", 0.01)
    route = {"topic": "p/{device}", "connection": "press", "device": "{device}"}
    metrics, ledger = Metrics(), OrderCheckingService()
    intake = Intake(Routes([parse_route(Section(route))]), spool, ReceiveClock(), metrics)
    sender = Sender(ledger, spool, metrics)
    intake.call_after_each_store(sender.notify_new_messages)
    tasks = [asyncio.create_task(each) for each in (intake.run(), sender.run())]
    for number in range(count):
        intake.accept_delivery(Delivery(f"p/d{number % DEVICES}", b'{"n":%d}' % (number // DEVICES)))
        if intake.is_full:
            await intake.wait_until_stored()
    await intake.wait_until_stored()
    assert (spool.spool.waiting.messages, ledger.count) == (count, 0)
    ledger.is_down = False
    # In parts, because the time limit of a wait is made for short ones.
    for part in range(1, 101):
        await wait_for_count(metrics, "sent_messages_total", count * part // 100)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert ledger.count == count
    assert set(ledger.last.values()) == {count // DEVICES - 1}
    assert spool.spool.waiting.messages == 0
