"""The Merkle tree of a chain: made from its hashes, and grown by records that are verified."""

import asyncio
from collections.abc import Sequence
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import genesis_hash
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import ChainKey, ChainStore, Tip
from shared.provenance.walk import Walk

HASHES_PAGE: Final = 10_000
RECORDS_PAGE: Final = 1_000
PAGE_BYTES: Final = 8_000_000


async def tree_of(store: ChainStore, chain: ChainKey, size: int) -> CompactRange:
    """Return the tree of a chain's first records, smaller when it has fewer."""
    (tree,) = await trees_of(store, chain, [(0, size)])
    return tree


async def trees_of(store: ChainStore, chain: ChainKey, ranges: Sequence[tuple[int, int]]) -> list[CompactRange]:
    """Return the tree of each range of leaves, from one pass over the stored hashes.

    Args:
        store: keeps the chain.
        chain: which chain.
        ranges: first leaf (from 0) and the one after the last; they do not overlap.
    """
    trees = {bounds: CompactRange() for bounds in ranges}
    for first, last in sorted(ranges):
        while (have := first + trees[first, last].size) < last:
            page = await store.hashes(chain, have, limit=min(HASHES_PAGE, last - have))
            if not page:
                break
            await asyncio.to_thread(trees[first, last].append, map(bytes.fromhex, page))
    return [trees[bounds] for bounds in ranges]


async def grown(store: ChainStore, chain: ChainKey, workspace: str, tree: CompactRange, tip: Tip) -> CompactRange:
    """Return a tree grown to the tip; every record that comes new into it is verified, and links to the one before.

    Raises:
        WorkspaceError: INTERNAL ``CHECKPOINT_REFUSED``; the chain is broken.
    """
    walk = Walk(genesis_hash(workspace, chain.target, chain.scope_key), tip.sequence, sequence=tree.size, tree=tree)
    if tree.size:
        last = await store.hashes(chain, tree.size - 1, limit=1)
        walk.last_hash = last[0] if last else ""
    while walk.fault is None and walk.sequence < tip.sequence:
        limit = min(RECORDS_PAGE, tip.sequence - walk.sequence)
        page = await store.read(chain, walk.sequence, limit=limit, max_bytes=PAGE_BYTES)
        if not page.records:
            break
        await asyncio.to_thread(walk.over, page.records)
    if walk.fault or walk.fork or walk.sequence != tip.sequence or walk.last_hash != tip.hash:
        fault = walk.fault or walk.fork
        reason = fault.reason if fault else "records and head item disagree"
        raise WorkspaceError(Kind.INTERNAL, "CHECKPOINT_REFUSED", f"The chain is broken and not signed: {reason}.")
    return tree
