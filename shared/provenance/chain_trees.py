"""Merkle trees of chains, computed from the stored hashes of records, with cached roots of subtrees."""

from collections import OrderedDict
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.provenance.merkle import CompactRange
from shared.provenance.merkle_tiles import SUBTREE_LEAVES, TILE_LEAVES, TILE_ROOTS, Tiles
from shared.provenance.ports import ChainKey, ChainStore
from shared.provenance.signed_tree import SignedTree, build_checkpoint_refused_error
from shared.runtime import SYSTEM_RUNTIME, Runtime

HASHES_PAGE: Final = 10_000
KNOWN_SUBTREES: Final = 50_000
"""Maximum number of cached subtree roots: enough for 200 million records, in about 10 MB."""
RELOAD_SECONDS: Final = 60.0
"""Minimum time between two reloads of a chain's roots by requests; a reload can read all hashes of the chain."""
_LOG = get_logger("provenance")


class ChainTrees:
    """Computes the Merkle trees of chains from the stored hashes of their records, and caches roots of subtrees.

    If someone changes stored hashes, roots that are computed from them are wrong and can be cached. When the stored
    hashes are correct again, the verification of the chain replaces the wrong roots, see :meth:`try_repair_roots`.

    Args:
        store: store of the chains.
        tiles: store of subtree roots that all processes share; None to cache roots in this process only.
        runtime: clock, randomness and threads.
    """

    def __init__(self, store: ChainStore, tiles: Tiles | None = None, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._tiles = tiles
        self._roots: OrderedDict[tuple[ChainKey, int], bytes] = OrderedDict()
        self._reloaded_at: dict[ChainKey, float] = {}
        self._runtime = runtime

    async def build_tree(self, chain: ChainKey, first_leaf: int, end_leaf: int) -> CompactRange:
        """Build the Merkle tree of a range of a chain's records; records beyond the end of the chain are ignored.

        Args:
            chain: chain of the tree.
            first_leaf: index of the first leaf, from 0.
            end_leaf: index after the last leaf.
        """
        tree = CompactRange()
        if first_leaf % SUBTREE_LEAVES == 0:
            await self._load_tiles(chain, first_leaf, end_leaf)
        while first_leaf % SUBTREE_LEAVES == 0 and first_leaf + tree.size + SUBTREE_LEAVES <= end_leaf:
            root = await self._find_subtree_root(chain, first_leaf + tree.size)
            if root is None:
                break
            tree.append_subtree(root, SUBTREE_LEAVES)
        await self._append_leaves(chain, first_leaf, end_leaf, tree)
        return tree

    async def build_signed_tree(self, chain: ChainKey, tree_size: int) -> SignedTree:
        """Build the tree of a chain's first ``tree_size`` records (at least 1), or of all if the chain is shorter."""
        before = await self.build_tree(chain, 0, tree_size - 1)
        last = await self._store.read_hashes(chain, tree_size - 1, limit=1)
        return SignedTree(before, leaf_data_from_record_hash(last[0]).hex() if last else "")

    async def save_tiles(self, chain: ChainKey, tree: CompactRange) -> None:
        """Store the new tiles (lists of subtree roots) of a chain's tree; existing tiles are not stored again.

        No tile is stored if the stored hashes of the records do not give this tree, because a hash is damaged.

        Args:
            chain: chain of the tree.
            tree: the signed tree, computed from verified records.
        """
        complete = tree.size // SUBTREE_LEAVES
        incomplete = await self._list_incomplete_tile_numbers(chain, complete)
        if not incomplete:
            return
        if not await self._has_subtree_roots(chain, tree.nodes[: complete.bit_count()], complete):
            self.forget_cached_roots(chain)
            _LOG.warning("the stored hashes of a chain differ from its signed tree", extra=fields(target=chain.target))
            return
        for tile in incomplete:
            await self._save_tile(chain, tile, complete)

    async def _has_subtree_roots(self, chain: ChainKey, expected_nodes: list[bytes], subtree_count: int) -> bool:
        """Return whether a chain's first ``subtree_count`` subtrees give these nodes; False if a hash is damaged."""
        try:
            return (await self.build_tree(chain, 0, subtree_count * SUBTREE_LEAVES)).nodes == expected_nodes
        except WorkspaceError as error:
            if error.kind is not Kind.CONFLICT:
                raise
            return False

    def forget_cached_roots(self, chain: ChainKey) -> None:
        """Remove the cached subtree roots of a chain, so that they are loaded or computed again."""
        for place in [place for place in self._roots if place[0] == chain]:
            del self._roots[place]

    def forget_cached_roots_if_due(self, chain: ChainKey) -> bool:
        """Remove the cached subtree roots of a chain, unless this method removed them in the last minute.

        The proofs of a damaged chain never match its signed root, so each request would load the roots again.

        Returns:
            Whether the roots were removed.
        """
        now = self._runtime.monotonic()
        self._reloaded_at = {one: at for one, at in self._reloaded_at.items() if now - at < RELOAD_SECONDS}
        if chain in self._reloaded_at:
            return False
        self._reloaded_at[chain] = now
        self.forget_cached_roots(chain)
        return True

    async def try_repair_roots(self, chain: ChainKey, tree_size: int, signed_root: bytes) -> bool:
        """Compare the subtree roots of a chain with a signed root; if they differ, compute and store them again.

        Subtree roots are wrong if they were computed while a stored hash was damaged, or if their tiles were forged.

        Args:
            chain: chain of the tree.
            tree_size: number of the signed tree's leaves.
            signed_root: signed root of the tree.

        Returns:
            Whether the subtree roots, repaired if necessary, give the signed root.

        Raises:
            WorkspaceError: UNAVAILABLE if a store does not respond.
        """
        rebuilt = ChainTrees(self._store, runtime=self._runtime)
        try:
            if (await self.build_tree(chain, 0, tree_size)).compute_root() == signed_root:
                return True
            self.forget_cached_roots(chain)
            if (await rebuilt.build_tree(chain, 0, tree_size)).compute_root() != signed_root:
                return False
        except WorkspaceError as error:
            if error.kind is not Kind.CONFLICT:
                raise
            return False
        complete = tree_size // SUBTREE_LEAVES
        rebuilt._tiles = self._tiles
        for tile in range(-(-complete // TILE_ROOTS)):
            await rebuilt._save_tile(chain, tile, complete)
        # Last, because after an interruption the stored roots must still differ from the signed root.
        self._roots.update(rebuilt._roots)
        return True

    async def _list_incomplete_tile_numbers(self, chain: ChainKey, subtree_count: int) -> list[int]:
        """Return the numbers of the tiles that are missing or incomplete, in order.

        A tile is a stored list of subtree roots. Only the tiles of the chain's first ``subtree_count`` subtrees are
        examined.
        """
        incomplete: list[int] = []
        for tile in reversed(range(-(-subtree_count // TILE_ROOTS))):
            wanted = min(TILE_ROOTS, subtree_count - tile * TILE_ROOTS)
            if self._tiles is None or len(await self._tiles.load_subtree_roots(chain, tile)) >= wanted:
                # Tiles are stored in order, so earlier tiles are complete if this one is.
                break
            incomplete.append(tile)
        return incomplete[::-1]

    async def _save_tile(self, chain: ChainKey, tile_number: int, subtree_count: int) -> None:
        """Store one tile: the list of the roots of its subtrees.

        Subtrees after the chain's first ``subtree_count`` subtrees are left out.
        """
        if self._tiles is None:
            return
        start, end = tile_number * TILE_LEAVES, min((tile_number + 1) * TILE_LEAVES, subtree_count * SUBTREE_LEAVES)
        roots = [await self._find_subtree_root(chain, first) for first in range(start, end, SUBTREE_LEAVES)]
        await self._tiles.save_subtree_roots(chain, tile_number, [root for root in roots if root])

    async def _load_tiles(self, chain: ChainKey, first_leaf: int, end_leaf: int) -> None:
        """Add the subtree roots of a range of leaves to the cache, from the stored tiles (lists of such roots)."""
        complete = end_leaf // SUBTREE_LEAVES * SUBTREE_LEAVES
        for start in range(first_leaf // TILE_LEAVES * TILE_LEAVES, complete, TILE_LEAVES):
            end = min(complete, start + TILE_LEAVES)
            if self._tiles is None or (chain, end - SUBTREE_LEAVES) in self._roots:
                continue
            for place, root in enumerate(await self._tiles.load_subtree_roots(chain, start // TILE_LEAVES)):
                self._roots.setdefault((chain, start + place * SUBTREE_LEAVES), root)

    async def _find_subtree_root(self, chain: ChainKey, first_leaf: int) -> bytes | None:
        root = self._roots.get((chain, first_leaf))
        if root is None:
            tree = CompactRange()
            await self._append_leaves(chain, first_leaf, first_leaf + SUBTREE_LEAVES, tree)
            if tree.size < SUBTREE_LEAVES:
                return None
            root = self._roots[chain, first_leaf] = tree.compute_root()
        self._roots.move_to_end((chain, first_leaf))
        while len(self._roots) > KNOWN_SUBTREES:
            self._roots.popitem(last=False)
        return root

    async def _append_leaves(self, chain: ChainKey, first_leaf: int, end_leaf: int, tree: CompactRange) -> None:
        while (have := first_leaf + tree.size) < end_leaf:
            page = await self._store.read_hashes(chain, have, limit=min(HASHES_PAGE, end_leaf - have))
            if not page:
                return
            leaves = list(map(leaf_data_from_record_hash, page))
            await self._runtime.run_in_thread(tree.append, leaves)


def leaf_data_from_record_hash(record_hash: str) -> bytes:
    """Convert the stored ``Hash`` of a record to the data of its leaf in the Merkle tree.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the text is not hexadecimal.
    """
    try:
        return bytes.fromhex(record_hash)
    except ValueError:
        raise build_checkpoint_refused_error("The chain is broken: a stored Hash is not hexadecimal.") from None
