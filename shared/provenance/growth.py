"""The Merkle tree of a chain: made from its hashes, and grown by records that are verified."""

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import digest, genesis_hash, is_time, record_id, untimed
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import ChainKey, ChainStore, Tip
from shared.provenance.tiles import SUBTREE_LEAVES, TILE_LEAVES, TILE_ROOTS, Tiles
from shared.provenance.walk import Walk, time_of
from shared.provenance.walking import walk_on

HASHES_PAGE: Final = 10_000
KNOWN_SUBTREES: Final = 50_000
"""Roots that a process keeps: 200 million records' worth, in about 10 MB."""


@dataclass(frozen=True, slots=True)
class Covered:
    """The tree that a checkpoint was signed for, with its last leaf by itself: the root proves both.

    Attributes:
        before: the tree without the last leaf.
        last_hash: ``Hash`` of the last record, hex; empty where nothing is covered.
    """

    before: CompactRange = field(default_factory=CompactRange)
    last_hash: str = ""

    def tree(self) -> CompactRange:
        """Return the whole tree."""
        tree = CompactRange(self.before.size, [*self.before.nodes])
        tree.append([bytes.fromhex(self.last_hash)] if self.last_hash else [])
        return tree

    def state(self) -> bytes:
        """Return working state that :meth:`of_state` makes this again from."""
        nodes = [node.hex() for node in self.before.nodes]
        return json.dumps({"size": self.before.size, "nodes": nodes, "last": self.last_hash}).encode()

    @classmethod
    def of_state(cls, state: bytes) -> "Covered | None":
        """Return what working state says, None when it is damaged, or of a version that did not keep the last leaf."""
        try:
            members = json.loads(state)
            before = CompactRange(int(members["size"]), [bytes.fromhex(node) for node in members["nodes"]])
            last = bytes.fromhex(members["last"]).hex()
        except (ValueError, KeyError, TypeError):
            return None
        return cls(before, last) if before.sound() else None


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

    async def covered(self, chain: ChainKey, size: int) -> Covered:
        """Return what covers a chain's first so many leaves, at least one; less when the chain has fewer."""
        before = await self.of(chain, 0, size - 1)
        last = await self._store.hashes(chain, size - 1, limit=1)
        return Covered(before, _leaf(last[0]).hex() if last else "")

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
            leaves = list(map(_leaf, page))
            await asyncio.to_thread(tree.append, leaves)


async def grown(store: ChainStore, chain: ChainKey, workspace: str, covered: Covered, tip: Tip, until: str) -> Covered:
    """Return what covers a chain up to the tip; every record that comes new into it is verified, and links on.

    Args:
        store: keeps the chain.
        chain: which chain.
        workspace: the workspace's id.
        covered: up to here the chain was signed; the stored record there must be the one that was.
        tip: beyond it.
        until: the latest time that a record may have.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED``; the chain is broken, or another one, or ahead of the clock.
    """
    tree = covered.tree()
    walk = Walk(genesis_hash(workspace, chain.target, chain.scope_key), tip.sequence, sequence=tree.size, tree=tree)
    if tree.size:
        walk.last_hash, walk.time = covered.last_hash, await _time_at(store, chain, covered)
    await _walk_up_to(store, chain, walk, tip.sequence - 1)
    before = CompactRange(walk.tree.size, [*walk.tree.nodes])
    await _walk_up_to(store, chain, walk, tip.sequence)
    if walk.fault or walk.fork or walk.sequence != tip.sequence or walk.last_hash != tip.hash:
        fault = walk.fault or walk.fork
        raise _refused(f"broken and not signed: {fault.reason if fault else 'records and head item disagree'}")
    if walk.time > until:
        raise _refused(f"not signed before its time: {record_id(walk.sequence)} lies ahead of this host's clock")
    return Covered(before, walk.last_hash)


async def _time_at(store: ChainStore, chain: ChainKey, covered: Covered) -> str:
    """Return the time of the last record that was signed, when it is still the one in its place."""
    place = covered.before.size + 1
    page = await store.read(chain, place - 1, limit=1, max_bytes=1)
    record = page.records[0] if page.records else None
    if record is None or (record.sequence, record.hash, digest(record.canonical)) != (
        place,
        covered.last_hash,
        covered.last_hash,
    ):
        raise _refused(f"not the one that its last checkpoint was signed for: {record_id(place)} is another one")
    time = time_of(record)
    if not is_time(time):
        raise _refused(f"broken and not signed: {untimed(record_id(place))}")
    return time


async def _walk_up_to(store: ChainStore, chain: ChainKey, walk: Walk, last: int) -> None:
    while walk.fault is None and walk.sequence < last:
        before = walk.sequence
        await walk_on(store, chain, walk, last)
        if walk.sequence == before:
            return


def _leaf(hashed: str) -> bytes:
    try:
        return bytes.fromhex(hashed)
    except ValueError:
        raise _refused("broken: a stored Hash is none") from None


def _refused(what: str) -> WorkspaceError:
    return WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", f"The chain is {what}.")
