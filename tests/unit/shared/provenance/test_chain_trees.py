"""Tests of the Merkle trees of chains: cached and stored roots of subtrees."""

from collections.abc import Sequence

import pytest
from oi.verification.merkle import is_included

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.provenance import chain_trees
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.checkpoints import build_checkpoint_name_prefix
from shared.provenance.merkle import CompactRange
from shared.provenance.merkle_proofs import Proofs
from shared.provenance.merkle_tiles import Tiles
from shared.provenance.ports import ChainKey
from tests.unit.shared.provenance.chains import PLATFORM, Ledger, read_leaves


async def test_proofs_use_cached_roots(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots of complete subtrees are cached, so that repeating a proof reads fewer hashes and gives the same proof."""
    monkeypatch.setattr(chain_trees, "SUBTREE_LEAVES", 4)
    await ledger.fill(PLATFORM, 30)
    proofs, reads = Proofs(ledger.store, ChainTrees(ledger.store)), []
    read = ledger.store.read_hashes

    async def count_and_read(chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        reads.append(limit)
        return await read(chain, after, limit=limit)

    monkeypatch.setattr(ledger.store, "read_hashes", count_and_read)
    first = await proofs.prove_inclusion(PLATFORM, 3, 37)
    before = sum(reads)
    reads.clear()
    assert await proofs.prove_inclusion(PLATFORM, 3, 37) == first
    assert (before, sum(reads)) == (36, 4)
    tree = CompactRange()
    tree.append(await read_leaves(ledger, PLATFORM))
    for sequence in (1, 4, 5, 32, 33, 37):
        proof = await proofs.prove_inclusion(PLATFORM, sequence, 37)
        leaf = (await read_leaves(ledger, PLATFORM))[sequence - 1]
        assert is_included(leaf, sequence - 1, 37, proof.hashes, tree.compute_root())


async def test_proofs_use_stored_roots_after_a_restart(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots of subtrees are stored with checkpoints; damaged or missing roots are computed and stored again."""
    for name, size in (("SUBTREE_LEAVES", 4), ("TILE_ROOTS", 4), ("TILE_LEAVES", 16)):
        monkeypatch.setattr(chain_trees, name, size)
    notes = FileCheckpointStore(ledger.folder / "checkpoints")
    await ledger.checkpoints.create(PLATFORM)
    await ledger.fill(PLATFORM, 30)
    await ledger.checkpoints.create(PLATFORM)
    tiles = sorted((ledger.folder / "checkpoints" / build_checkpoint_name_prefix(PLATFORM)).glob("roots-*.state"))
    assert [len(await Tiles(notes, build_checkpoint_name_prefix).load(PLATFORM, tile)) for tile in range(4)] == [
        4,
        4,
        1,
        0,
    ]
    tree = CompactRange()
    tree.append(every := await read_leaves(ledger, PLATFORM))
    reads: list[int] = []
    read = ledger.store.read_hashes

    async def count_and_read(chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        reads.append(limit)
        return await read(chain, after, limit=limit)

    monkeypatch.setattr(ledger.store, "read_hashes", count_and_read)

    async def count_read_hashes() -> int:
        reads.clear()
        proof = await Proofs(
            ledger.store, ChainTrees(ledger.store, Tiles(notes, build_checkpoint_name_prefix))
        ).prove_inclusion(PLATFORM, 3, 37)
        assert is_included(every[2], 2, 37, proof.hashes, tree.compute_root())
        return sum(reads)

    assert await count_read_hashes() == 4
    content = tiles[0].read_bytes()
    tiles[0].write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    assert await count_read_hashes() == 4 + 12
    for tile in tiles:
        tile.unlink()
    assert await count_read_hashes() == 36
    await ledger.fill(PLATFORM, 3)
    await ledger.checkpoints.create(PLATFORM)
    assert await count_read_hashes() == 4
