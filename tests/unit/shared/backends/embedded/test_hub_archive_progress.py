"""Tests of the archive's progress, which is computed from the messages of the embedded hub."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.backends.embedded.hub import HubReader, HubWriter
from shared.backends.embedded.hub_archive_progress import HubArchiveProgress
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB, HubMessage

MESSAGE = HubMessage(b"{}", "rig", {})


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[HubWriter]:
    """Yield a hub and close it after the test."""
    log = HubWriter(tmp_path / "hub.sqlite")
    yield log
    await log.close()


def commit_as_read(path: Path, hub: str, group: str) -> None:
    """Mark all events of a hub as read by a consumer group."""
    reader = HubReader(path)
    for partition in reader.list_partitions(hub):
        reader.commit(hub, group, partition, reader.find_last_sequence_number(hub, partition))
    reader.close()


async def test_an_empty_hub_is_archived(tmp_path: Path) -> None:
    """If the hub has no messages, the archive is complete."""
    assert await HubArchiveProgress(tmp_path / "hub.sqlite").wait_until_archived(0)


@pytest.mark.parametrize(("hub_name", "group"), [(TELEMETRY_HUB, "$Default"), (IMPULSES_HUB, "archive")])
async def test_unread_events_are_awaited(tmp_path: Path, hub: HubWriter, hub_name: str, group: str) -> None:
    """The archive is complete only after its consumer group has read all events; other groups do not matter."""
    await hub.send(hub_name, [MESSAGE])
    path = tmp_path / "hub.sqlite"
    commit_as_read(path, hub_name, "live")
    assert not await HubArchiveProgress(path).wait_until_archived(0)
    commit_as_read(path, hub_name, group)
    assert await HubArchiveProgress(path).wait_until_archived(0)


async def test_impulses_of_awaited_messages_are_awaited(tmp_path: Path, hub: HubWriter) -> None:
    """A message counts as archived when its normalised form is archived; later messages do not matter."""
    path = tmp_path / "hub.sqlite"
    await hub.send(TELEMETRY_HUB, [MESSAGE])
    waiting = asyncio.create_task(HubArchiveProgress(path).wait_until_archived(30))
    await hub.send(IMPULSES_HUB, [MESSAGE])
    commit_as_read(path, TELEMETRY_HUB, "$Default")
    await asyncio.wait([waiting], timeout=0.5)
    assert not waiting.done()
    commit_as_read(path, IMPULSES_HUB, "archive")
    await hub.send(TELEMETRY_HUB, [MESSAGE])
    assert await waiting


async def test_an_unreadable_hub_is_not_archived(tmp_path: Path) -> None:
    """If the hub's file is damaged, the archive is not complete."""
    (tmp_path / "hub.sqlite").write_bytes(b"no database" * 1000)
    assert not await HubArchiveProgress(tmp_path / "hub.sqlite").wait_until_archived(0)
