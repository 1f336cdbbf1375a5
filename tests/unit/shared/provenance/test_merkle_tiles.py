"""Tests of stored roots of subtrees."""

from pathlib import Path

import pytest

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.provenance.checkpoints import build_checkpoint_name_prefix
from shared.provenance.merkle_tiles import Tiles
from tests.unit.shared.provenance.chains import BATCH, PLATFORM

ROOTS = [bytes([number]) * 32 for number in range(3)]


@pytest.fixture
def tile_store(tmp_path: Path) -> Tiles:
    """Provide an empty store of tiles."""
    return Tiles(FileCheckpointStore(tmp_path), build_checkpoint_name_prefix)


async def test_a_merkle_tile_is_loaded_as_it_was_saved(tile_store: Tiles) -> None:
    """A saved tile (stored roots of subtrees) is loaded only for its chain and number."""
    await tile_store.save_subtree_roots(PLATFORM, 1, ROOTS)
    assert await tile_store.load_subtree_roots(PLATFORM, 1) == ROOTS
    assert await tile_store.load_subtree_roots(PLATFORM, 0) == []
    assert await tile_store.load_subtree_roots(BATCH, 1) == []


async def test_a_saved_merkle_tile_replaces_the_earlier_one(tile_store: Tiles) -> None:
    """A tile with more roots replaces the stored tile."""
    await tile_store.save_subtree_roots(PLATFORM, 0, ROOTS[:1])
    await tile_store.save_subtree_roots(PLATFORM, 0, ROOTS)
    assert await tile_store.load_subtree_roots(PLATFORM, 0) == ROOTS


@pytest.mark.parametrize("position", [0, 40, -1])
async def test_a_damaged_merkle_tile_is_ignored(tile_store: Tiles, tmp_path: Path, position: int) -> None:
    """A tile with a changed byte gives no roots, so that they are computed again."""
    await tile_store.save_subtree_roots(PLATFORM, 0, ROOTS)
    [path] = (tmp_path / build_checkpoint_name_prefix(PLATFORM)).glob("roots-*.state")
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    assert await tile_store.load_subtree_roots(PLATFORM, 0) == []
