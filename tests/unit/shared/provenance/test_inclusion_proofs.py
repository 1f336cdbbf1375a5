"""Tests of inclusion proofs for several records of one chain."""

from collections.abc import Sequence

import pytest
from oi.verification.merkle import is_included

from shared.errors import WorkspaceError
from shared.provenance import chain_trees, inclusion_proofs
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.inclusion_proofs import InclusionProofs
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import ChainKey
from tests.unit.shared.provenance.chains import PLATFORM, Ledger, read_leaves


@pytest.fixture(autouse=True)
def _small_subtrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide the chain of seven records into subtrees of four."""
    for module in (chain_trees, inclusion_proofs):
        monkeypatch.setattr(module, "SUBTREE_LEAVES", 4)


@pytest.mark.parametrize("size", [1, 4, 5, 7])
async def test_each_record_has_a_valid_inclusion_proof(ledger: Ledger, size: int) -> None:
    """The proof of each record is valid for the root, even if the tree ends within a subtree."""
    leaves = await read_leaves(ledger, PLATFORM)
    tree = CompactRange()
    tree.append(leaves[:size])
    proofs = InclusionProofs(ledger.store, ChainTrees(ledger.store), PLATFORM, size)
    for sequence in range(1, size + 1):
        proof = await proofs.prove(sequence)
        assert proofs.get_record_hash(sequence) == leaves[sequence - 1]
        assert is_included(leaves[sequence - 1], sequence - 1, size, proof.hashes, tree.compute_root())


async def test_records_of_a_subtree_are_read_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records of each subtree are read once, however many proofs are created from it."""
    reads: list[int] = []
    read = ledger.store.read_hashes

    async def count_and_read(chain: ChainKey, first: int, *, limit: int) -> Sequence[str]:
        reads.append(first)
        return await read(chain, first, limit=limit)

    monkeypatch.setattr(ledger.store, "read_hashes", count_and_read)
    proofs = InclusionProofs(ledger.store, ChainTrees(ledger.store), PLATFORM, 7)
    for sequence in (1, 2, 4, 5, 7):
        await proofs.prove(sequence)
    assert sorted(reads) == [0, 0, 4, 4]


@pytest.mark.parametrize(
    ("sql", "size"), [("DELETE FROM records WHERE chain = 1 AND sequence = 7", 7), ("SELECT 1", 9)]
)
async def test_a_chain_with_a_missing_record_gets_no_proof(ledger: Ledger, sql: str, size: int) -> None:
    """If a chain has fewer records than its checkpoint states, no proof is created."""
    ledger.tamper(lambda file: file.execute(sql))
    with pytest.raises(WorkspaceError) as raised:
        await InclusionProofs(ledger.store, ChainTrees(ledger.store), PLATFORM, size).prove(5)
    assert raised.value.code == "CHECKPOINT_REFUSED"


async def test_a_changed_hash_under_a_cached_root_gets_no_proof(ledger: Ledger) -> None:
    """If a Hash was changed after the root of its subtree was cached, only records of other subtrees get a proof."""
    trees = ChainTrees(ledger.store)
    await trees.build_tree(PLATFORM, 0, 7)
    ledger.tamper(lambda file: file.execute(f"UPDATE records SET hash = '{'ab' * 32}' WHERE sequence = 2"))
    proofs = InclusionProofs(ledger.store, trees, PLATFORM, 7)
    assert not await proofs.can_prove([1])
    assert not await proofs.can_prove([1, 5])
    assert await proofs.can_prove([5])


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM records WHERE chain = 1 AND sequence = 6", "UPDATE records SET hash = 'zz' WHERE sequence = 1", ""],
)
@pytest.mark.parametrize("sequences", [[1, 2], [3, 7], [5], [1, 2, 3, 4, 5, 6, 7]])
async def test_records_can_be_proved_if_each_of_their_proofs_can_be_computed(
    ledger: Ledger, sql: str, sequences: Sequence[int]
) -> None:
    """Records can be proved exactly if the proof of each of them can be computed."""
    ledger.tamper(lambda file: file.execute(sql or "SELECT 1"))
    proofs = InclusionProofs(ledger.store, ChainTrees(ledger.store), PLATFORM, 7)
    can_prove = await proofs.can_prove(sequences)
    try:
        for sequence in sequences:
            await proofs.prove(sequence)
    except WorkspaceError:
        assert not can_prove
    else:
        assert can_prove
