"""Tests that a consumer group waits for more events after a partial batch."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from local.host import event_hubs
from local.host.event_hubs import EventHubSetting, PartitionLoop
from local.host.hub_access import HubAccess
from local.host.shutdown import ShutdownSignal
from local.host.worker import LoadedFunction
from shared.backends.embedded.hub import HubWriter
from shared.backends.embedded.hub_file import compute_partition_id
from shared.telemetry.models import HubMessage

FUNCTION = LoadedFunction("archive", "id", {"name": "events", "type": "eventHubTrigger"}, None)


class ShutdownAtFirstPause(ShutdownSignal):
    """Fake shutdown signal that is set at the first pause and records the pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def wait_until_set(self, seconds: float) -> bool:
        """Record a pause, and report that the host stops."""
        self.pauses.append(seconds)
        self.set()
        return True


async def test_the_host_waits_for_more_events_after_a_partial_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a partial batch the host waits for more events; after a full batch it does not."""
    delivered: list[int] = []

    async def invoke_function(_function: LoadedFunction, data: Any, **_: Any) -> None:
        delivered.append(len(data.collection_bytes.bytes))

    monkeypatch.setattr(event_hubs, "invoke_function", invoke_function)
    log = HubWriter(tmp_path / "hub.sqlite")
    await log.send("impulses", [HubMessage(b"x", "key", {})] * 5)
    await log.close()
    hub, stopping = HubAccess(tmp_path / "hub.sqlite", timedelta(hours=72)), ShutdownAtFirstPause()
    setting = EventHubSetting(FUNCTION, "impulses", "archive", many=True, binary=True, collect_seconds=1.5)
    async with asyncio.timeout(30):
        await PartitionLoop(setting, compute_partition_id("key"), hub, 2, stopping).run()
    await hub.close()
    assert (delivered, stopping.pauses) == ([2, 2, 1], [1.5])
