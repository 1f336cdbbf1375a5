"""Consumer groups whose events gather: a file for each connection and second, not for each handful of events."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from local.host import event_hubs
from local.host.event_hubs import EventHubSetting, PartitionLoop
from local.host.hub_access import HubAccess
from local.host.shutdown import ShutdownSignal
from local.host.worker import LoadedFunction
from shared.backends.embedded.hub import HubWriter
from shared.backends.embedded.hub_file import partition_for_key
from shared.telemetry.models import HubMessage

FUNCTION = LoadedFunction("archive", "id", {"name": "events", "type": "eventHubTrigger"}, None)


class ShutdownAtFirstPause(ShutdownSignal):
    """The host stops when somebody first pauses, and knows for how long that was meant to be."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def wait_for(self, seconds: float) -> bool:
        """Note the pause and stop."""
        self.pauses.append(seconds)
        self.set()
        return True


async def test_events_gather_after_a_batch_that_was_not_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full batches follow each other at once; only after one that was not full may events gather."""
    delivered: list[int] = []

    async def invoke(_function: LoadedFunction, data: Any, **_: Any) -> None:
        delivered.append(len(data.collection_bytes.bytes))

    monkeypatch.setattr(event_hubs, "invoke", invoke)
    log = HubWriter(tmp_path / "hub.sqlite")
    await log.send("impulses", [HubMessage(b"x", "key", {})] * 5)
    await log.close()
    hub, stopping = HubAccess(tmp_path / "hub.sqlite"), ShutdownAtFirstPause()
    setting = EventHubSetting(FUNCTION, "impulses", "archive", many=True, binary=True, collect_seconds=1.5)
    async with asyncio.timeout(30):
        await PartitionLoop(setting, partition_for_key("key"), hub, 2, stopping).run()
    await hub.close()
    assert (delivered, stopping.pauses) == ([2, 2, 1], [1.5])
