"""Tests of live streams of the local host: the access key of the emulator, and the wait for the query table."""

from datetime import timedelta
from pathlib import Path

import pytest

from local.host.hub_access import HubAccess
from local.host.live_stream import HubProgress, load_or_create_access_key
from local.host.shutdown import ShutdownSignal
from shared.backends.embedded.hub import HubReader, HubWriter
from shared.telemetry.models import IMPULSES_HUB, HubMessage


def test_an_access_key_is_created_once(tmp_path: Path) -> None:
    """The access key is created once, in a file that only its owner can read."""
    path = tmp_path / "key"
    key = load_or_create_access_key(path)
    assert (len(key), path.stat().st_mode & 0o777) == (64, 0o600)
    assert load_or_create_access_key(path) == key


@pytest.mark.parametrize("content", ["", "a" * 63])
def test_an_incomplete_access_key_is_rejected(tmp_path: Path, content: str) -> None:
    """An empty or cut file of the access key is rejected, because its content could be guessed."""
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(OSError, match="must have 64 characters"):
        load_or_create_access_key(path)


async def test_a_replay_does_not_wait_for_an_engine_that_does_not_read_the_hub(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A replay waits for the query table only if this host runs the engine, or another engine has read the hub."""
    path = tmp_path / "hub.sqlite"
    writer = HubWriter(path)
    await writer.send(IMPULSES_HUB, [HubMessage(b"{}", "c", {})])
    await writer.close()
    hub, stopping = HubAccess(path, timedelta(hours=72)), ShutdownSignal()
    progress = HubProgress(hub, stopping, runs_engine=False)
    await progress.wait_for_query_table()
    assert caplog.messages == []
    assert not await progress.is_hub_read_by_engine()
    assert await HubProgress(hub, stopping, runs_engine=True).is_hub_read_by_engine()
    reader = HubReader(path)
    reader.store_offset(IMPULSES_HUB, "adx", "0", 0)
    reader.close()
    assert await progress.is_hub_read_by_engine()
    await hub.close()
