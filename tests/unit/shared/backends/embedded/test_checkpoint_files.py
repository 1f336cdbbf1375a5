"""Checkpoint files among what somebody else put into the folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.provenance.checkpoints import name_prefix
from tests.unit.shared.provenance.chains import PLATFORM, Ledger, ledger

COUNT = 4


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Ledger]:
    """A chain with a checkpoint, and its end cut off so that only the checkpoint tells."""
    async with ledger(tmp_path) as opened:
        await opened.fill(PLATFORM, COUNT)
        assert await opened.checkpoints.create(PLATFORM)
        opened.tamper(
            lambda file: file.executescript(
                "DELETE FROM records WHERE sequence = 4;"
                "UPDATE chains SET (sequence, hash, timestamp) ="
                " (SELECT sequence, hash, timestamp FROM records WHERE sequence = 3)"
            )
        )
        yield opened


def folder(plant: Ledger) -> Path:
    """Return the folder of the chain's checkpoints."""
    return plant.folder / "checkpoints" / name_prefix(PLATFORM)


@pytest.mark.parametrize("name", ["999999/999/000000000001", "000000/001/000000000004", "999999", "000000/999"])
async def test_what_is_no_checkpoint_hides_none(plant: Ledger, name: str) -> None:
    """A file in the place of a folder, or under another size's folder, leaves the newest checkpoint the newest."""
    path = folder(plant) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"junk")
    verdict = await plant.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, "000000000004")


async def test_a_folder_in_the_place_of_a_checkpoint_is_not_trusted(plant: Ledger) -> None:
    """There is a verdict, and it names the place."""
    (folder(plant) / "999999/999/999999999999").mkdir(parents=True)
    verdict = await plant.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, f"{name_prefix(PLATFORM)}999999999999")
