"""Tests of Merkle proofs of chains, which must verify for signed roots."""

from collections.abc import Sequence

import pytest
from oi.verification.merkle import is_consistent, is_included

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.errors import WorkspaceError
from shared.provenance import chain_trees, merkle_proofs
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.checkpoints import build_checkpoint_name_prefix
from shared.provenance.merkle_proofs import Proofs
from shared.provenance.merkle_tiles import Tiles
from shared.provenance.ports import ChainKey, Target
from shared.runtime import Runtime
from tests.unit.shared.provenance.chains import OF_PLATFORM, PLATFORM, Ledger, read_leaves


async def test_proofs_hold_against_the_signed_roots(ledger: Ledger) -> None:
    """Each record's inclusion proof and each consistency proof between checkpoints is valid for the signed roots."""
    first = await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.fill(PLATFORM, 6)
    second = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert first is not None
    assert second is not None
    old, new = [await ledger.checkpoints.verify_and_parse_checkpoint(PLATFORM, stored) for stored in (first, second)]
    proofs = Proofs(ledger.store, ChainTrees(ledger.store))
    for index, leaf in enumerate(await read_leaves(ledger, PLATFORM)):
        proof = await proofs.prove_inclusion(PLATFORM, index + 1, new.size)
        assert is_included(leaf, proof.leaf_index, proof.size, proof.hashes, new.root)
    between = await proofs.prove_consistency(PLATFORM, old.size, new.size)
    assert is_consistent(old.size, new.size, old.root, new.root, between.hashes)


async def test_proofs_use_subtree_roots_that_another_process_repaired(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another process repairs wrong subtree roots, proofs of a process that has cached them are valid again."""
    for module in (chain_trees, merkle_proofs):
        monkeypatch.setattr(module, "SUBTREE_LEAVES", 4)
    first = await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.fill(PLATFORM, 6)
    second = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert first is not None
    assert second is not None
    old, new = [await ledger.checkpoints.verify_and_parse_checkpoint(PLATFORM, stored) for stored in (first, second)]
    leaves = await read_leaves(ledger, PLATFORM)
    tiles = Tiles(FileCheckpointStore(ledger.folder / "checkpoints"), build_checkpoint_name_prefix)
    right = await tiles.load_subtree_roots(PLATFORM, 0)
    seconds = 0.0
    runtime = Runtime(monotonic=lambda: seconds)
    for is_consistency in (False, True):
        await tiles.save_subtree_roots(PLATFORM, 0, [b"x" * 32] * 3)
        proofs = Proofs(ledger.store, ChainTrees(ledger.store, tiles, runtime=runtime), ledger.checkpoints)
        proof = await proofs.prove_inclusion(PLATFORM, 13, new.size)
        assert not is_included(leaves[12], proof.leaf_index, proof.size, proof.hashes, new.root)
        await tiles.save_subtree_roots(PLATFORM, 0, right)
        seconds += 60
        if is_consistency:
            growth = await proofs.prove_consistency(PLATFORM, old.size, new.size)
            assert is_consistent(old.size, new.size, old.root, new.root, growth.hashes)
        proof = await proofs.prove_inclusion(PLATFORM, 13, new.size)
        assert is_included(leaves[12], proof.leaf_index, proof.size, proof.hashes, new.root)


async def test_a_record_with_a_damaged_hash_has_a_proof(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof of a record does not contain its hash, so it is built although the stored hash is not hexadecimal."""
    for module in (chain_trees, merkle_proofs):
        monkeypatch.setattr(module, "SUBTREE_LEAVES", 4)
    stored = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert stored is not None
    signed = await ledger.checkpoints.verify_and_parse_checkpoint(PLATFORM, stored)
    leaves = await read_leaves(ledger, PLATFORM)
    damaged = f"sequence = 6 AND chain = (SELECT chain FROM chains {OF_PLATFORM})"
    ledger.tamper(lambda file: file.execute(f"UPDATE records SET hash = 'no hash' WHERE {damaged}"))
    proofs = Proofs(ledger.store, ledger.checkpoints.trees, ledger.checkpoints)
    proof = await proofs.prove_inclusion(PLATFORM, 6, signed.size)
    assert is_included(leaves[5], proof.leaf_index, proof.size, proof.hashes, signed.root)


@pytest.mark.parametrize("is_consistency", [False, True])
async def test_a_damaged_chain_is_read_again_at_most_once_a_minute(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, *, is_consistency: bool
) -> None:
    """Proofs of a damaged chain compute the subtree roots again once a minute, and otherwise use the cached roots."""
    for module in (chain_trees, merkle_proofs):
        monkeypatch.setattr(module, "SUBTREE_LEAVES", 4)
    await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.fill(PLATFORM, 30)
    await ledger.checkpoints.create_if_grown(PLATFORM)
    sql = "UPDATE records SET hash = ? WHERE sequence = 1 AND chain = (SELECT chain FROM chains WHERE target = ?)"
    ledger.tamper(lambda file: file.execute(sql, ("0" * 64, PLATFORM.target)))
    seconds, pages = 0.0, []
    trees = ChainTrees(ledger.store, runtime=Runtime(monotonic=lambda: seconds))
    proofs, read = Proofs(ledger.store, trees, ledger.checkpoints), ledger.store.read_hashes

    async def count_and_read(chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        pages.append(after)
        return await read(chain, after, limit=limit)

    async def prove_and_count_reads_of_first_hash() -> int:
        pages.clear()
        await (
            proofs.prove_consistency(PLATFORM, 7, 37) if is_consistency else proofs.prove_inclusion(PLATFORM, 37, 37)
        )
        return pages.count(0)

    monkeypatch.setattr(ledger.store, "read_hashes", count_and_read)
    assert await prove_and_count_reads_of_first_hash() == 2
    seconds = 59.0
    assert await prove_and_count_reads_of_first_hash() == 0
    seconds = 60.0
    assert await prove_and_count_reads_of_first_hash() == 1


async def test_a_proof_of_an_empty_chain_is_rejected_with_the_reason(ledger: Ledger) -> None:
    """The rejection of a proof in a chain without records says that the chain has no records."""
    chain = ChainKey(Target.DOMAIN_EVENTS, "never-written")
    with pytest.raises(WorkspaceError, match="size: the chain has no records, so it has no proofs"):
        await Proofs(ledger.store, ChainTrees(ledger.store)).prove_inclusion(chain, 1, 1)


@pytest.mark.parametrize(("sequence", "size"), [(0, 5), (6, 5), (1, 0), (1, 8), (-1, -1)])
async def test_proofs_beyond_the_chain_are_rejected(ledger: Ledger, sequence: int, size: int) -> None:
    """A request for a proof is rejected if its size or sequence number is beyond the end of the chain."""
    with pytest.raises(WorkspaceError):
        await Proofs(ledger.store, ChainTrees(ledger.store)).prove_inclusion(PLATFORM, sequence, size)
    with pytest.raises(WorkspaceError):
        await Proofs(ledger.store, ChainTrees(ledger.store)).prove_consistency(PLATFORM, sequence, size)
