"""Tests that the gateway acknowledges a received message only after storing it on disk."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from oi.gateway import intake as module
from oi.gateway.clock import ReceiveClock
from oi.gateway.deliveries import Delivery
from oi.gateway.intake import MAX_PENDING, Intake
from oi.gateway.metrics import Metrics
from oi.gateway.routes import Routes, parse_route
from oi.gateway.sections import Section
from oi.gateway.settings import DROP_OLDEST, STOP, SpoolSettings
from oi.gateway.spool import MAX_TRANSACTION_BYTES, GatewaySpool
from oi.gateway.spool_thread import SpoolThread

from tests.client.gateway.running import WAIT_SECONDS


class Bench:
    """Test bench around the gateway's intake and its file of waiting messages; it records acknowledged messages."""

    def __init__(self, folder: Path, *, max_bytes: int = 2**30, when_full: str = STOP) -> None:
        self.spool = GatewaySpool(SpoolSettings(folder / "spool.db", max_bytes, when_full))
        self.thread = SpoolThread(self.spool)
        self.metrics = Metrics()
        routes = Routes([parse_route(Section({"topic": "a/{line}", "connection": "{line}"}))])
        self.intake = Intake(routes, self.thread, ReceiveClock(), self.metrics)
        self.acknowledged: list[int] = []

    def deliver_message(self, number: int, payload: bytes = b"{}", address: str = "a/press") -> None:
        """Deliver a message to the intake, as the broker does."""
        self.intake.accept_delivery(Delivery(address, payload, b"m", lambda: self.acknowledged.append(number)))

    async def wait_until_stored(self) -> None:
        """Wait until all delivered messages are stored on disk."""
        async with asyncio.timeout(WAIT_SECONDS):
            await self.intake.wait_until_stored()


@asynccontextmanager
async def run_intake(bench: Bench) -> AsyncIterator[None]:
    """Context manager: run the intake for the duration of the block."""
    task = asyncio.create_task(bench.intake.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    """Yield a test bench around an intake with a new file of waiting messages."""
    made = Bench(tmp_path)
    yield made
    made.thread.close()


async def test_messages_are_acknowledged_only_after_they_are_on_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message is acknowledged only after it is stored on disk."""
    append, seen = bench.spool.append_and_count_dropped, []

    def append_and_record(*arguments: Any) -> int:
        seen.append(list(bench.acknowledged))
        return append(*arguments)

    monkeypatch.setattr(bench.spool, "append_and_count_dropped", append_and_record)
    async with run_intake(bench):
        for number in range(10):
            bench.deliver_message(number)
        await bench.wait_until_stored()
        bench.deliver_message(10, b"not json")
        await bench.wait_until_stored()
    assert (seen, bench.acknowledged) == ([[], list(range(10))], list(range(11)))
    assert (bench.spool.waiting.messages, len(bench.spool.list_newest_rejected(9))) == (10, 1)
    assert bench.spool.read_marks() == [b"m" * 10, b"m"]


@pytest.mark.parametrize("error", [sqlite3.OperationalError("database or disk is full"), OSError("failed")])
async def test_no_message_is_acknowledged_while_the_disk_is_full(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """While the disk is full, no message is acknowledged; after that, each message is stored once and in order."""
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.0)
    caplog.set_level(logging.INFO)
    append, failures = bench.spool.append_and_count_dropped, [error] * 3

    def raise_disk_full(*arguments: Any) -> int:
        if failures:
            assert (bench.acknowledged, bench.intake.is_full) == ([], len(failures) < 3)
            raise failures.pop()
        return append(*arguments)

    monkeypatch.setattr(bench.spool, "append_and_count_dropped", raise_disk_full)
    resumed = asyncio.Event()
    bench.intake.call_when_not_full(resumed.set)
    async with run_intake(bench):
        bench.deliver_message(1)
        bench.deliver_message(2)
        await asyncio.wait_for(resumed.wait(), WAIT_SECONDS)
    assert bench.acknowledged == [1, 2]
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert "none are acknowledged" in caplog.text
    assert "oi_gateway_spool_blocked 0" in bench.metrics.format_prometheus_text()


async def test_messages_that_exceed_the_spool_together_are_stored_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the received messages together do not fit into the spool, those that fit are stored, and the others later."""
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.0)
    bench, payload, sent = Bench(tmp_path, max_bytes=2**20), b'{"text":"%s"}' % (b"x" * 200_000), 0
    for number in range(12):
        bench.deliver_message(number, payload)
    async with run_intake(bench), asyncio.timeout(WAIT_SECONDS):
        while sent < 12:
            batch = await bench.thread.run(bench.spool.find_next_batch, "press")
            if batch is not None:
                assert bench.spool.waiting.bytes <= 2**20
                await bench.thread.run(bench.spool.remove_batch, batch)
                sent += batch.messages
        await bench.intake.wait_until_stored()
    bench.thread.close()
    assert bench.acknowledged == list(range(12))
    assert not bench.intake.is_full


async def test_many_received_messages_are_stored_in_several_transactions(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction stores up to 4 MiB, whose log fits into the reserve, unless a single message is larger."""
    append, seen = bench.spool.append_and_count_dropped, []

    def append_and_record(lines: Any, rejected: Any, marks: bytes) -> int:
        seen.append(
            sum(len(each) for own in lines.values() for each in own) + sum(len(each.message) for each in rejected)
        )
        return append(lines, rejected, marks)

    monkeypatch.setattr(bench.spool, "append_and_count_dropped", append_and_record)
    async with run_intake(bench):
        bench.deliver_message(0, b"x" * 5_000_000)
        for number in range(1, 31):
            bench.deliver_message(number, b'{"text":"%s"}' % (b"x" * 200_000))
        await asyncio.sleep(0)
    assert bench.acknowledged == list(range(31))
    assert (seen[0], len(seen)) == (5_000_000, 3)
    assert max(seen[1:]) <= MAX_TRANSACTION_BYTES


async def test_with_drop_oldest_received_messages_never_exceed_the_spool(tmp_path: Path) -> None:
    """With the policy `dropOldest`, the newest messages of a group that exceeds the spool's size stay in the spool."""
    bench, payload = Bench(tmp_path, max_bytes=2**20, when_full=DROP_OLDEST), b'{"text":"%s"}' % (b"x" * 200_000)
    for number in range(12):
        bench.deliver_message(number, payload)
    async with run_intake(bench):
        await bench.wait_until_stored()
    waiting, dropped = bench.spool.waiting, bench.metrics.get_count("dropped_messages_total")
    bench.thread.close()
    assert bench.acknowledged == list(range(12))
    assert 0 < waiting.bytes <= 2**20
    assert waiting.messages + dropped == 12


async def test_a_refused_connection_does_not_stop_the_intake_of_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If messages of a connection that the service refuses fill the spool, messages of others are still stored."""
    bench, payload = Bench(tmp_path, max_bytes=2**20), b'{"text":"%s"}' % (b"x" * 200_000)
    bench.spool.set_refused("press", is_refused=True)
    for number in range(12):
        bench.deliver_message(number, payload)
    bench.deliver_message(12, b"{}", "a/lathe")
    async with run_intake(bench):
        await bench.wait_until_stored()
    lookups, waiting = bench.spool.lookups_with_messages, bench.spool.waiting
    rejected = bench.metrics.get_count("rejected_messages_total", 'reason="refused_connection"')
    bench.thread.close()
    assert (bench.acknowledged, lookups) == (list(range(13)), ["press", "lathe"])
    assert waiting.bytes <= 2**20
    assert waiting.messages + rejected == 13
    assert [record.getMessage()[:18] for record in caplog.records] == ["The spool is full:"]


async def test_a_stopping_gateway_stores_the_messages_that_fit(tmp_path: Path) -> None:
    """A stopping gateway stores and acknowledges the received messages that fit into the spool."""
    bench = Bench(tmp_path, max_bytes=2**20)
    async with run_intake(bench):
        await asyncio.sleep(0)
        for number in range(12):
            bench.deliver_message(number, b'{"text":"%s"}' % (b"x" * 200_000))
    bench.thread.close()
    assert bench.acknowledged == [0, 1, 2, 3, 4]


async def test_the_message_source_waits_while_many_messages_are_not_on_disk(bench: Bench) -> None:
    """While many messages are not yet on disk, the source must wait, so that the memory that they use is limited."""
    for number in range(MAX_PENDING):
        assert not bench.intake.is_full
        bench.deliver_message(number)
    assert bench.intake.is_full
    async with run_intake(bench):
        await bench.wait_until_stored()
    assert not bench.intake.is_full


async def test_a_stopping_gateway_stores_all_received_messages(bench: Bench) -> None:
    """A stopping gateway stores all received messages, and acknowledges them if the source is connected."""
    async with run_intake(bench):
        await asyncio.sleep(0)
        bench.deliver_message(1)
    assert (bench.spool.waiting.messages, bench.acknowledged) == (1, [1])


async def test_log_lines_about_rejected_messages_are_limited(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Log lines about rejected messages are limited in rate, so that one device cannot fill the log."""
    for number in range(1500):
        bench.deliver_message(number, b"x")
    bench.deliver_message(0, address="b/c")
    assert len(caplog.records) == 3
    assert bench.metrics.get_count("rejected_messages_total", 'reason="not_json"') == 1500


async def test_message_ids_are_new_after_each_start(tmp_path: Path) -> None:
    """Each start of the gateway creates new message ids, even if its spool is an older copy."""
    ids = set()
    for _ in range(2):
        bench = Bench(tmp_path)
        async with run_intake(bench):
            bench.deliver_message(1)
            bench.deliver_message(2)
            await bench.wait_until_stored()
        batch = bench.spool.find_next_batch("press")
        assert batch is not None
        ids |= {line.split(b'"')[3] for line in b"".join(batch.blocks).splitlines()}
        bench.thread.close()
    assert len(ids) == 4
