"""Tests of the Merkle trees of chains: cached and stored roots of subtrees."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from oi.verification.merkle import is_included

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.errors import WorkspaceError
from shared.provenance import chain_trees
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.checkpoints import build_checkpoint_name_prefix
from shared.provenance.merkle import CompactRange
from shared.provenance.merkle_proofs import Proofs
from shared.provenance.merkle_tiles import Tiles
from shared.provenance.ports import ChainKey
from tests.unit.shared.provenance.chains import OF_PLATFORM, PLATFORM, Ledger, open_ledger, read_leaves


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
    await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.fill(PLATFORM, 30)
    await ledger.checkpoints.create_if_grown(PLATFORM)
    tiles = sorted((ledger.folder / "checkpoints" / build_checkpoint_name_prefix(PLATFORM)).glob("roots-*.state"))
    assert [
        len(await Tiles(notes, build_checkpoint_name_prefix).load_subtree_roots(PLATFORM, tile)) for tile in range(4)
    ] == [
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
    await ledger.checkpoints.create_if_grown(PLATFORM)
    assert await count_read_hashes() == 4


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide trees into subtrees of four leaves, and tiles of four subtrees."""
    for name, size in (("SUBTREE_LEAVES", 4), ("TILE_ROOTS", 4), ("TILE_LEAVES", 16)):
        monkeypatch.setattr(chain_trees, name, size)


def set_hash(ledger: Ledger, sequence: int, stored_hash: str) -> None:
    """Change the stored Hash of a record of the chain :data:`PLATFORM`."""
    sql = f"UPDATE records SET hash = ? WHERE sequence = ? AND chain = (SELECT chain FROM chains {OF_PLATFORM})"
    ledger.tamper(lambda file: file.execute(sql, (stored_hash, sequence)))


async def are_proofs_valid(ledger: Ledger, trees: ChainTrees) -> bool:
    """Return whether the proofs of all records of the newest checkpoint match its signed root."""
    checkpoint = (await ledger.checkpoints.load_newest_verified(PLATFORM)).checkpoint
    leaves, proofs = await read_leaves(ledger, PLATFORM), Proofs(ledger.store, trees)
    found = [await proofs.prove_inclusion(PLATFORM, place + 1, checkpoint.size) for place in range(checkpoint.size)]
    return all(
        is_included(leaf, one.leaf_index, one.size, one.hashes, checkpoint.root)
        for leaf, one in zip(leaves, found, strict=False)
    )


@pytest.mark.usefixtures("small_tiles")
async def test_wrong_roots_are_not_stored(tmp_path: Path) -> None:
    """Subtree roots of a damaged Hash are not stored with a checkpoint; after its repair, all proofs are valid."""
    async with open_ledger(tmp_path) as ledger:
        await ledger.fill(PLATFORM, 15)
        await ledger.checkpoints.create_if_grown(PLATFORM)
        stored = (await ledger.records(PLATFORM))[13].hash
        set_hash(ledger, 14, "0" * 64)
        await ledger.fill(PLATFORM, 30)
        await ledger.checkpoints.create_if_grown(PLATFORM)
        assert not await are_proofs_valid(ledger, ledger.checkpoints.trees)
        set_hash(ledger, 14, stored)
    async with open_ledger(tmp_path) as ledger:
        assert await are_proofs_valid(ledger, ledger.checkpoints.trees)
        await ledger.fill(PLATFORM, 1)
        await ledger.checkpoints.create_if_grown(PLATFORM)
        assert await are_proofs_valid(ledger, ledger.checkpoints.trees)


@pytest.mark.usefixtures("small_tiles")
async def test_a_checkpoint_is_complete_although_an_old_hash_is_damaged(tmp_path: Path) -> None:
    """If a Hash that an earlier checkpoint covers is not hexadecimal, a new checkpoint is created without tiles."""
    async with open_ledger(tmp_path) as ledger:
        await ledger.fill(PLATFORM, 15)
        await ledger.checkpoints.create_if_grown(PLATFORM)
        stored = (await ledger.records(PLATFORM))[13].hash
        set_hash(ledger, 14, "not hex")
        await ledger.fill(PLATFORM, 30)
        created = await ledger.checkpoints.create_if_grown(PLATFORM)
        assert created is not None
        signature = await FileCheckpointStore(tmp_path / "checkpoints").find_checkpoint(f"{created.name}.cose")
        assert signature is not None
        set_hash(ledger, 14, stored)
        assert await are_proofs_valid(ledger, ledger.checkpoints.trees)


@pytest.mark.usefixtures("small_tiles")
async def test_tiles_are_stored_in_their_order(ledger: Ledger) -> None:
    """If storing one of several new tiles fails, the next checkpoint stores this tile and the later ones."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.fill(PLATFORM, 30)
    folder = ledger.folder / "checkpoints" / build_checkpoint_name_prefix(PLATFORM)
    (folder / "roots-000001.state").mkdir()
    with pytest.raises(WorkspaceError, match="cannot be read or written"):
        await ledger.checkpoints.create_if_grown(PLATFORM)
    (folder / "roots-000001.state").rmdir()
    await ledger.fill(PLATFORM, 1)
    await ledger.checkpoints.create_if_grown(PLATFORM)
    tiles = Tiles(FileCheckpointStore(ledger.folder / "checkpoints"), build_checkpoint_name_prefix)
    assert [len(await tiles.load_subtree_roots(PLATFORM, tile)) for tile in range(3)] == [4, 4, 1]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("is_cached", [False, True])
async def test_verification_of_a_valid_chain_repairs_wrong_roots(tmp_path: Path, *, is_cached: bool) -> None:
    """Forged or outdated subtree roots, in the cache or in stored tiles, are computed again by a verification."""
    notes = FileCheckpointStore(tmp_path / "checkpoints")
    async with open_ledger(tmp_path) as ledger:
        await ledger.fill(PLATFORM, 37)
        await ledger.checkpoints.create_if_grown(PLATFORM)
        await Tiles(notes, build_checkpoint_name_prefix).save_subtree_roots(PLATFORM, 1, [b"x" * 32] * 4)
    async with open_ledger(tmp_path) as ledger:
        if is_cached:
            assert not await are_proofs_valid(ledger, ledger.checkpoints.trees)
        assert (await ledger.verify(PLATFORM)).reason == "37 records, all sound"
        assert await are_proofs_valid(ledger, ledger.checkpoints.trees)
    async with open_ledger(tmp_path) as ledger:
        assert await are_proofs_valid(ledger, ledger.checkpoints.trees)


class InterruptedTiles(Tiles):
    """Tiles of which the second one cannot be stored."""

    async def save_subtree_roots(self, chain: ChainKey, tile_number: int, roots: Sequence[bytes]) -> None:
        """Store the roots of one tile, or raise CancelledError."""
        if tile_number == 1:
            raise asyncio.CancelledError
        await super().save_subtree_roots(chain, tile_number, roots)


@pytest.mark.usefixtures("small_tiles")
async def test_an_interrupted_repair_of_stored_roots_is_repeated(ledger: Ledger) -> None:
    """If a repair of subtree roots is cancelled before all tiles are stored, a later repair stores them."""
    await ledger.fill(PLATFORM, 30)
    await ledger.checkpoints.create_if_grown(PLATFORM)
    checkpoint = (await ledger.checkpoints.load_newest_verified(PLATFORM)).checkpoint
    notes = FileCheckpointStore(ledger.folder / "checkpoints")
    tiles = InterruptedTiles(notes, build_checkpoint_name_prefix)
    right = await tiles.load_subtree_roots(PLATFORM, 1)
    await Tiles(notes, build_checkpoint_name_prefix).save_subtree_roots(PLATFORM, 1, [b"x" * 32] * 4)
    trees = ChainTrees(ledger.store, tiles)
    for _ in range(2):
        with pytest.raises(asyncio.CancelledError):
            await trees.try_repair_roots(PLATFORM, checkpoint.size, checkpoint.root)
    assert await ChainTrees(ledger.store, Tiles(notes, build_checkpoint_name_prefix)).try_repair_roots(
        PLATFORM, checkpoint.size, checkpoint.root
    )
    assert await tiles.load_subtree_roots(PLATFORM, 1) == right


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("damaged", ["0" * 64, "not hex"])
async def test_roots_are_not_repaired_from_damaged_hashes(ledger: Ledger, damaged: str) -> None:
    """Stored subtree roots stay unchanged if the stored hashes do not give the signed root."""
    await ledger.fill(PLATFORM, 30)
    await ledger.checkpoints.create_if_grown(PLATFORM)
    checkpoint = (await ledger.checkpoints.load_newest_verified(PLATFORM)).checkpoint
    tiles = Tiles(FileCheckpointStore(ledger.folder / "checkpoints"), build_checkpoint_name_prefix)
    forged = [b"x" * 32] * 4
    await tiles.save_subtree_roots(PLATFORM, 0, forged)
    set_hash(ledger, 3, damaged)
    trees = ChainTrees(ledger.store, tiles)
    assert not await trees.try_repair_roots(PLATFORM, checkpoint.size, checkpoint.root)
    assert await tiles.load_subtree_roots(PLATFORM, 0) == forged
