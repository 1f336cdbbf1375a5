"""Tests of notifications that wake the readers of the embedded event hub when a writer in the same process commits."""

from collections.abc import Collection
from pathlib import Path

import pytest

from shared.backends.embedded.hub import HubWriter
from shared.backends.embedded.hub_file import compute_partition_id
from shared.backends.embedded.hub_signals import HubPartition, HubSignals
from shared.errors import WorkspaceError
from shared.telemetry.models import HubMessage


async def test_a_commit_notifies_readers_of_its_partitions(tmp_path: Path) -> None:
    """After a commit, readers in the same process are notified of the hub and partition of the new events."""
    signals, announced = HubSignals(), list[Collection[HubPartition]]()
    signals.subscribe(tmp_path / "hub.sqlite", announced.append)
    log = HubWriter(tmp_path / "hub.sqlite", signals=signals)
    await log.send("telemetry", [HubMessage(b"one", "key", {})])
    await log.close()
    assert announced == [{("telemetry", compute_partition_id("key"))}]


async def test_a_failed_commit_sends_no_notification(tmp_path: Path) -> None:
    """If a commit fails, readers get no notification."""
    signals, announced = HubSignals(), list[Collection[HubPartition]]()
    folder = tmp_path / "hub.sqlite"
    folder.mkdir()
    signals.subscribe(folder, announced.append)
    log = HubWriter(folder, signals=signals)
    with pytest.raises(WorkspaceError):
        await log.send("telemetry", [HubMessage(b"one", "key", {})])
    await log.close()
    assert announced == []


def test_notifications_reach_only_readers_of_the_file(tmp_path: Path) -> None:
    """Readers of another file, and readers that have unsubscribed, get no notification."""
    signals, first, second = HubSignals(), list[Collection[HubPartition]](), list[Collection[HubPartition]]()
    unsubscribe = signals.subscribe(tmp_path / "a", first.append)
    signals.subscribe(tmp_path / "b", second.append)
    signals.notify_subscribers(tmp_path / "a", {("hub", "0")})
    unsubscribe()
    signals.notify_subscribers(tmp_path / "a", {("hub", "1")})
    assert (first, second) == ([{("hub", "0")}], [])
