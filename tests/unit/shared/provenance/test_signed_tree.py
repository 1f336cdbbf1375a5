"""Tests of the Merkle tree that a checkpoint signs: its stored state, and its extension by verified records."""

from datetime import timedelta

import pytest

from shared.errors import WorkspaceError
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.signed_tree import SignedTree, extend_signed_tree
from shared.runtime import SYSTEM_RUNTIME
from shared.timestamps import format_rfc3339, now
from tests.unit.shared.provenance.chains import PLATFORM, WORKSPACE, Ledger

COUNT = 7
"""Number of records that the fixture ``ledger`` writes."""


async def extend_tree(ledger: Ledger, size: int) -> SignedTree:
    """Extend the tree of a chain's first records to all of its records."""
    covered = await ChainTrees(ledger.store).build_signed_tree(PLATFORM, size) if size else SignedTree()
    tip, until = await ledger.store.read_tip(PLATFORM), format_rfc3339(now() + timedelta(hours=1))
    return await extend_signed_tree(ledger.store, PLATFORM, WORKSPACE, covered, tip, until, runtime=SYSTEM_RUNTIME)


async def test_an_extended_tree_contains_all_records(ledger: Ledger) -> None:
    """A tree that was extended from any size equals the tree of the whole chain."""
    whole = await ChainTrees(ledger.store).build_signed_tree(PLATFORM, COUNT)
    for size in range(COUNT):
        assert await extend_tree(ledger, size) == whole


async def test_a_tree_is_not_extended_by_a_faulty_record(ledger: Ledger) -> None:
    """If a record after the signed tree was edited, the tree is not extended."""
    covered = "(SELECT chain FROM chains WHERE target = 'PlatformConfig')"
    ledger.tamper(
        lambda file: file.execute(f"UPDATE records SET user_id = 'nobody' WHERE sequence = 6 AND chain = {covered}")
    )
    with pytest.raises(WorkspaceError, match="The chain is broken"):
        await extend_tree(ledger, 4)


async def test_a_stored_tree_is_restored(ledger: Ledger) -> None:
    """A tree that is parsed from its stored state equals the original tree."""
    for size in range(1, COUNT + 1):
        tree = await ChainTrees(ledger.store).build_signed_tree(PLATFORM, size)
        assert SignedTree.from_working_state(tree.to_working_state()) == tree


@pytest.mark.parametrize(
    "state",
    [
        *(b"", b"{}", b"[]", b'{"size": 1, "nodes": [], "last": "00"}', b'{"size": 0, "nodes": [], "last": "x"}'),
        *(b"[" * 100_000, b'{"size": "0", "nodes": [], "last": ""}', b'{"size": 1e400, "nodes": [], "last": ""}'),
        *(b'{"size": 0, "nodes": [], "last": ""}', b'{"size": 1, "nodes": ["%b"], "last": ""}' % (b"00" * 32)),
        b'{"size": -1, "nodes": ["%b"], "last": "00"}' % (b"00" * 32),
    ],
)
def test_a_damaged_state_gives_no_tree(state: bytes) -> None:
    """A damaged state gives no tree, so that the tree is computed again."""
    assert SignedTree.from_working_state(state) is None
