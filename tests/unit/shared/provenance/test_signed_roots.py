"""Tests of loading checkpoints and the signatures of their Merkle tree roots."""

from pathlib import Path

import pytest

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.errors import WorkspaceError
from shared.provenance.checkpoints import build_checkpoint_name
from shared.provenance.signed_roots import FRESH_SECONDS, SignedRoots
from tests.unit.shared.provenance.chains import PLATFORM, Ledger
from tests.virtual_time import VirtualTime


def _damage_signatures(folder: Path) -> None:
    for file in folder.rglob("*.cose"):
        file.write_bytes(b"damaged")


async def test_a_signed_root_is_cached_for_a_time(ledger: Ledger, tmp_path: Path) -> None:
    """A cached root signature is read again after some time, because its key is possibly no longer trusted."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    time = VirtualTime()
    roots = SignedRoots(ledger.checkpoints, runtime=time.runtime)
    first = await roots.load(PLATFORM, 7)
    assert first.checkpoint.size == 7
    _damage_signatures(tmp_path)
    time.advance(FRESH_SECONDS - 1)
    assert await roots.load(PLATFORM, 7) is first
    time.advance(1)
    with pytest.raises(WorkspaceError) as raised:
        await roots.load(PLATFORM, 7)
    assert raised.value.code == "CHECKPOINT_REFUSED"


async def test_a_signed_root_exists_only_for_sizes_of_checkpoints(ledger: Ledger) -> None:
    """A signed root is found only for sizes that have a checkpoint."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    with pytest.raises(WorkspaceError) as raised:
        await SignedRoots(ledger.checkpoints).load(PLATFORM, 6)
    assert raised.value.code == "CHECKPOINT_NOT_FOUND"


async def test_the_first_of_two_signatures_is_used(ledger: Ledger, tmp_path: Path) -> None:
    """If two processes sign the same root, both return the signature that was stored first."""
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    loaded = await SignedRoots(ledger.checkpoints).load(PLATFORM, 7)
    stored = await FileCheckpointStore(tmp_path / "checkpoints").find_checkpoint(
        build_checkpoint_name(PLATFORM, 7) + ".cose"
    )
    assert stored is not None
    assert loaded.signature.encode() == stored.note
