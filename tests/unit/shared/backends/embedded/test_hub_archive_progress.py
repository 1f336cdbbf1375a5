"""Whether what the embedded hub holds has come to the archive."""

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
    """Return a hub that is closed after the test."""
    log = HubWriter(tmp_path / "hub.sqlite")
    yield log
    await log.close()


def read(path: Path, hub: str, group: str) -> None:
    """Note that a group has read everything of a hub."""
    reader = HubReader(path)
    for partition in reader.partitions(hub):
        reader.commit(hub, group, partition, reader.last(hub, partition))
    reader.close()


async def test_a_hub_that_holds_nothing_is_settled(tmp_path: Path) -> None:
    """Nothing is waited for when nothing is on its way."""
    assert await HubArchiveProgress(tmp_path / "hub.sqlite").wait_until_archived(0)


@pytest.mark.parametrize(("hub_name", "group"), [(TELEMETRY_HUB, "$Default"), (IMPULSES_HUB, "archive")])
async def test_what_is_on_its_way_is_not_settled(tmp_path: Path, hub: HubWriter, hub_name: str, group: str) -> None:
    """An event that its reader has not taken is waited for; what other groups read does not count."""
    await hub.send(hub_name, [MESSAGE])
    path = tmp_path / "hub.sqlite"
    read(path, hub_name, "live")
    assert not await HubArchiveProgress(path).wait_until_archived(0)
    read(path, hub_name, group)
    assert await HubArchiveProgress(path).wait_until_archived(0)


async def test_impulses_that_come_of_what_was_waited_for_are_waited_for(tmp_path: Path, hub: HubWriter) -> None:
    """A message counts as archived once its impulse is, not when its own hub was read; later ones do not matter."""
    path = tmp_path / "hub.sqlite"
    await hub.send(TELEMETRY_HUB, [MESSAGE])
    waiting = asyncio.create_task(HubArchiveProgress(path).wait_until_archived(30))
    await hub.send(IMPULSES_HUB, [MESSAGE])
    read(path, TELEMETRY_HUB, "$Default")
    await asyncio.wait([waiting], timeout=0.5)
    assert not waiting.done()
    read(path, IMPULSES_HUB, "archive")
    await hub.send(TELEMETRY_HUB, [MESSAGE])
    assert await waiting


async def test_a_hub_that_cannot_be_read_is_not_settled(tmp_path: Path) -> None:
    """A damaged file makes no claim."""
    (tmp_path / "hub.sqlite").write_bytes(b"no database" * 1000)
    assert not await HubArchiveProgress(tmp_path / "hub.sqlite").wait_until_archived(0)
