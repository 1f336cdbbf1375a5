"""Tests that unexpected files do not hide checkpoint files."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.provenance.checkpoints import build_checkpoint_name_prefix
from shared.provenance.notes import NoteError
from tests.unit.shared.provenance.chains import PLATFORM, Ledger, open_ledger

COUNT = 4


@pytest.fixture
async def truncated_ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide a chain whose last records were removed; only its newest checkpoint reveals the removal."""
    async with open_ledger(tmp_path) as opened:
        await opened.fill(PLATFORM, COUNT)
        assert await opened.checkpoints.create_if_grown(PLATFORM)
        opened.tamper(
            lambda file: file.executescript(
                "DELETE FROM records WHERE sequence = 4;"
                "UPDATE chains SET (sequence, hash, timestamp) ="
                " (SELECT sequence, hash, timestamp FROM records WHERE sequence = 3)"
            )
        )
        yield opened


def get_folder(truncated_ledger: Ledger) -> Path:
    """Return the folder of the chain's checkpoints."""
    return truncated_ledger.folder / "checkpoints" / build_checkpoint_name_prefix(PLATFORM)


@pytest.mark.parametrize("name", ["999999/999/000000000001", "000000/001/000000000004", "999999", "000000/999"])
async def test_misplaced_files_do_not_hide_checkpoints(truncated_ledger: Ledger, name: str) -> None:
    """A file where a folder belongs, or in a wrong folder, does not hide the newest checkpoint."""
    path = get_folder(truncated_ledger) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"junk")
    verdict = await truncated_ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, "000000000004")


async def test_a_folder_in_place_of_a_checkpoint_is_reported(truncated_ledger: Ledger) -> None:
    """If a folder replaces a checkpoint file, verification reports a fault of this checkpoint."""
    (get_folder(truncated_ledger) / "999999/999/999999999999").mkdir(parents=True)
    verdict = await truncated_ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, f"{build_checkpoint_name_prefix(PLATFORM)}999999999999")


async def test_a_link_to_a_missing_file_is_reported(truncated_ledger: Ledger) -> None:
    """If a checkpoint is a symbolic link to a missing file, it is reported, and no further checkpoint is signed."""
    path = get_folder(truncated_ledger) / "999999/999/999999999999"
    path.parent.mkdir(parents=True)
    path.symlink_to(path.with_name("missing"))
    verdict = await truncated_ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, f"{build_checkpoint_name_prefix(PLATFORM)}999999999999")
    assert verdict.reason == "the newest checkpoint is not trusted: it cannot be read"
    with pytest.raises(NoteError):
        await truncated_ledger.checkpoints.create_if_grown(PLATFORM)
