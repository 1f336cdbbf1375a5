"""The Merkle tree of a chain: made from its hashes, and grown by records that are verified."""

import asyncio
from collections import OrderedDict
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import genesis_hash
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import ChainKey, ChainStore, Tip
from shared.provenance.tiles import SUBTREE_LEAVES, TILE_LEAVES, TILE_ROOTS, Tiles
from shared.provenance.walk import Walk, time_of
from shared.provenance.walking import walk_on

HASHES_PAGE: Final = 10_000
KNOWN_SUBTREES: Final = 50_000
"""Roots that a process keeps: 200 million records' worth, in about 10 MB."""


class Trees:
    """Makes trees from the stored hashes; roots of complete subtrees are kept, since a chain only grows.

    Should somebody change the stored hashes, trees of kept roots agree with the signed checkpoints, new ones do not.

    Args:
        store: keeps the chains.
        tiles: keep roots beyond this process; None where nothing does.
    """

    def __init__(self, store: ChainStore, tiles: Tiles | None = None) -> None:
        self._store = store
        self._tiles = tiles
        self._roots: OrderedDict[tuple[ChainKey, int], bytes] = OrderedDict()

    async def of(self, chain: ChainKey, first: int, last: int) -> CompactRange:
        """Return the tree of a range of leaves, smaller when the chain has fewer.

        Args:
            chain: which chain.
            first: first leaf, from 0.
            last: the one after the last leaf.
        """
        tree = CompactRange()
        if first % SUBTREE_LEAVES == 0:
            await self._recall(chain, first, last)
        while first % SUBTREE_LEAVES == 0 and first + tree.size + SUBTREE_LEAVES <= last:
            root = await self._subtree(chain, first + tree.size)
            if root is None:
                break
            tree.append_subtree(root, SUBTREE_LEAVES)
        await self._grow(chain, first, last, tree)
        return tree

    async def keep(self, chain: ChainKey, size: int) -> None:
        """Put the roots of a chain's first leaves into tiles, those that are missing there.

        Args:
            chain: which chain.
            size: number of leaves.
        """
        complete = size // SUBTREE_LEAVES
        for tile in reversed(range(-(-complete // TILE_ROOTS))):
            wanted = min(TILE_ROOTS, complete - tile * TILE_ROOTS)
            if self._tiles is None or len(await self._tiles.roots(chain, tile)) >= wanted:
                # The tiles before it were filled earlier.
                return
            firsts = range(tile * TILE_LEAVES, tile * TILE_LEAVES + wanted * SUBTREE_LEAVES, SUBTREE_LEAVES)
            roots = [await self._subtree(chain, first) for first in firsts]
            await self._tiles.save(chain, tile, [root for root in roots if root])

    async def _recall(self, chain: ChainKey, first: int, last: int) -> None:
        """Read the tiles of a range whose roots are not known yet."""
        complete = last // SUBTREE_LEAVES * SUBTREE_LEAVES
        for start in range(first // TILE_LEAVES * TILE_LEAVES, complete, TILE_LEAVES):
            end = min(complete, start + TILE_LEAVES)
            if self._tiles is None or (chain, end - SUBTREE_LEAVES) in self._roots:
                continue
            for place, root in enumerate(await self._tiles.roots(chain, start // TILE_LEAVES)):
                self._roots.setdefault((chain, start + place * SUBTREE_LEAVES), root)

    async def _subtree(self, chain: ChainKey, first: int) -> bytes | None:
        root = self._roots.get((chain, first))
        if root is None:
            tree = CompactRange()
            await self._grow(chain, first, first + SUBTREE_LEAVES, tree)
            if tree.size < SUBTREE_LEAVES:
                return None
            root = self._roots[chain, first] = tree.root()
        self._roots.move_to_end((chain, first))
        while len(self._roots) > KNOWN_SUBTREES:
            self._roots.popitem(last=False)
        return root

    async def _grow(self, chain: ChainKey, first: int, last: int, tree: CompactRange) -> None:
        while (have := first + tree.size) < last:
            page = await self._store.hashes(chain, have, limit=min(HASHES_PAGE, last - have))
            if not page:
                return
            try:
                leaves = list(map(bytes.fromhex, page))
            except ValueError:
                raise WorkspaceError(
                    Kind.CONFLICT, "CHECKPOINT_REFUSED", "The chain is broken: a stored Hash is none."
                ) from None
            await asyncio.to_thread(tree.append, leaves)


async def grown(store: ChainStore, chain: ChainKey, workspace: str, tree: CompactRange, tip: Tip) -> CompactRange:
    """Return a tree grown to the tip; every record that comes new into it is verified, and links to the one before.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED``; the chain is broken.
    """
    walk = Walk(genesis_hash(workspace, chain.target, chain.scope_key), tip.sequence, sequence=tree.size, tree=tree)
    if tree.size:
        page = await store.read(chain, tree.size - 1, limit=1, max_bytes=1)
        walk.last_hash, walk.time = (page.records[0].hash, time_of(page.records[0])) if page.records else ("", "")
    while walk.fault is None and walk.sequence < tip.sequence:
        before = walk.sequence
        await walk_on(store, chain, walk, tip.sequence)
        if walk.sequence == before:
            break
    if walk.fault or walk.fork or walk.sequence != tip.sequence or walk.last_hash != tip.hash:
        fault = walk.fault or walk.fork
        reason = fault.reason if fault else "records and head item disagree"
        raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", f"The chain is broken and not signed: {reason}.")
    return walk.tree
