"""Tests of how the local host reads the embedded event hub."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from local.host import hub_access
from local.host.hub_access import HubAccess
from local.host.shutdown import ShutdownSignal
from shared.backends.embedded.hub import HubWriter
from shared.backends.embedded.hub_file import compute_partition_id
from shared.backends.embedded.hub_signals import HubSignals
from shared.telemetry.models import HubMessage

MESSAGES = [HubMessage(b"x", "key", {})]
PARTITION = compute_partition_id("key")


async def test_events_of_this_process_wake_their_partition_without_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append in this process wakes only the task for its partition, without waiting for the next poll."""
    monkeypatch.setattr(hub_access, "_POLL_SECONDS", 3600.0)
    hub, stopping = HubAccess(tmp_path / "hub.sqlite", timedelta(hours=1)), ShutdownSignal()
    arrival, other = hub.get_new_events_signal("telemetry", PARTITION), hub.get_new_events_signal("impulses", PARTITION)
    watching = asyncio.create_task(hub.watch_file(stopping))
    await asyncio.sleep(0)
    log = HubWriter(tmp_path / "hub.sqlite")
    async with asyncio.timeout(30):
        await log.send("telemetry", MESSAGES)
        await arrival.wait()
    assert not other.is_set()
    stopping.set()
    await watching
    await log.close()
    await hub.close()


async def test_events_of_other_processes_wake_all_tasks(tmp_path: Path) -> None:
    """An append in another process sends no signal; the next poll finds it and wakes all waiting tasks."""
    hub, stopping = HubAccess(tmp_path / "hub.sqlite", timedelta(hours=1)), ShutdownSignal()
    watching = asyncio.create_task(hub.watch_file(stopping))
    log = HubWriter(tmp_path / "hub.sqlite", signals=HubSignals())
    async with asyncio.timeout(30):
        await hub.get_new_events_signal("telemetry", PARTITION).wait()  # the first check of the file
        arrival = hub.get_new_events_signal("telemetry", PARTITION)
        await log.send("telemetry", MESSAGES)
        await arrival.wait()
    stopping.set()
    await watching
    await log.close()
    await hub.close()


async def test_a_shutdown_ends_present_and_later_waits_for_events(tmp_path: Path) -> None:
    """When the host stops, tasks that wait for events continue at once, and later waits end at once."""
    hub, stopping = HubAccess(tmp_path / "hub.sqlite", timedelta(hours=1)), ShutdownSignal()
    arrival = hub.get_new_events_signal("telemetry", PARTITION)
    stopping.set()
    await hub.watch_file(stopping)
    assert arrival.is_set()
    assert hub.get_new_events_signal("telemetry", PARTITION).is_set()
    await hub.close()
