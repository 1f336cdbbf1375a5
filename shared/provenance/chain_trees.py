"""Merkle trees of chains: cached roots of subtrees, extension by verified records, and proofs."""

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.errors import Kind, WorkspaceError, invalid
from shared.provenance.chain_verification import ChainVerification, parse_content_time
from shared.provenance.checkpoint_ports import CheckpointStore
from shared.provenance.hash_rule import describe_invalid_time, digest, genesis_hash, is_time, record_id
from shared.provenance.merkle import CompactRange, consistency_ranges, inclusion_ranges
from shared.provenance.parallel import stream_records
from shared.provenance.ports import ChainKey, ChainStore, Tip

SUBTREE_LEAVES: Final = 4_096
TILE_ROOTS: Final = 256
TILE_LEAVES: Final = SUBTREE_LEAVES * TILE_ROOTS
"""Number of leaves that one tile covers: about a million, in 8 KiB."""

_DIGEST: Final = hashlib.sha256().digest_size


class Tiles:
    """Stored roots of a chain's complete subtrees, so that a proof after a restart need not read every hash.

    A tile is the list of the roots of 256 consecutive subtrees. Tiles can be computed again at any time, and need not
    be trusted: the recipient of a proof checks it against a signed root.

    Args:
        notes: store of the checkpoints, which also stores the tiles.
        prefix: returns the prefix of the names of a chain's tiles.
    """

    def __init__(self, notes: CheckpointStore, prefix: Callable[[ChainKey], str]) -> None:
        self._notes = notes
        self._prefix = prefix

    async def load(self, chain: ChainKey, tile: int) -> Sequence[bytes]:
        """Return the roots of a tile in order; an empty list for a missing or damaged tile."""
        content = await self._notes.load_state(self._build_name(chain, tile)) or b""
        roots, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(roots).digest() != digest or len(roots) % _DIGEST:
            return []
        return [roots[start : start + _DIGEST] for start in range(0, len(roots), _DIGEST)]

    async def save(self, chain: ChainKey, tile: int, roots: Sequence[bytes]) -> None:
        """Store a tile, or replace it."""
        content = b"".join(roots)
        await self._notes.save_state(self._build_name(chain, tile), content + hashlib.sha256(content).digest())

    def _build_name(self, chain: ChainKey, tile: int) -> str:
        return f"{self._prefix(chain)}roots-{tile:06d}"


HASHES_PAGE: Final = 10_000
KNOWN_SUBTREES: Final = 50_000
"""Maximum number of cached roots: those of 200 million records, in about 10 MB."""


@dataclass(frozen=True, slots=True)
class SignedTree:
    """Merkle tree of a checkpoint, without its last leaf, and that leaf. The signed root proves both.

    Attributes:
        before: tree without the last leaf.
        last_hash: ``Hash`` of the last record, hex; empty for an empty tree.
    """

    before: CompactRange = field(default_factory=CompactRange)
    last_hash: str = ""

    def build_full_tree(self) -> CompactRange:
        """Return the whole tree, with the last leaf."""
        tree = CompactRange(self.before.size, [*self.before.nodes])
        tree.append([bytes.fromhex(self.last_hash)] if self.last_hash else [])
        return tree

    def to_state(self) -> bytes:
        """Serialise the tree as working state for :meth:`from_state`."""
        nodes = [node.hex() for node in self.before.nodes]
        return json.dumps({"size": self.before.size, "nodes": nodes, "last": self.last_hash}).encode()

    @classmethod
    def from_state(cls, state: bytes) -> "SignedTree | None":
        """Parse a tree from working state; None if the state is damaged or has the format of an earlier version."""
        try:
            members = json.loads(state)
            before = CompactRange(int(members["size"]), [bytes.fromhex(node) for node in members["nodes"]])
            last = bytes.fromhex(members["last"]).hex()
        except (ValueError, KeyError, TypeError):
            return None
        return cls(before, last) if before.is_valid() else None


class ChainTrees:
    """Computes Merkle trees from the stored hashes, and caches the roots of complete subtrees.

    If stored hashes are changed later, the cached roots still match the signed checkpoints, but new roots do not.

    Args:
        store: store of the chains.
        tiles: stored roots, which all processes share; None for a cache in this process only.
    """

    def __init__(self, store: ChainStore, tiles: Tiles | None = None) -> None:
        self._store = store
        self._tiles = tiles
        self._roots: OrderedDict[tuple[ChainKey, int], bytes] = OrderedDict()

    async def build_tree(self, chain: ChainKey, first: int, last: int) -> CompactRange:
        """Build the tree of a range of leaves; it is smaller if the chain has fewer leaves.

        Args:
            chain: chain of the tree.
            first: first leaf, from 0.
            last: position after the last leaf.
        """
        tree = CompactRange()
        if first % SUBTREE_LEAVES == 0:
            await self._load_tiles(chain, first, last)
        while first % SUBTREE_LEAVES == 0 and first + tree.size + SUBTREE_LEAVES <= last:
            root = await self._load_subtree_root(chain, first + tree.size)
            if root is None:
                break
            tree.append_subtree(root, SUBTREE_LEAVES)
        await self._append_leaves(chain, first, last, tree)
        return tree

    async def build_signed_tree(self, chain: ChainKey, size: int) -> SignedTree:
        """Build the tree of a chain's first ``size`` leaves, at least one; it is smaller if the chain is shorter."""
        before = await self.build_tree(chain, 0, size - 1)
        last = await self._store.hashes(chain, size - 1, limit=1)
        return SignedTree(before, _parse_leaf(last[0]).hex() if last else "")

    async def save_roots(self, chain: ChainKey, size: int) -> None:
        """Store the tiles of a chain's first ``size`` leaves, as far as they are missing.

        Args:
            chain: chain of the tree.
            size: number of leaves.
        """
        complete = size // SUBTREE_LEAVES
        for tile in reversed(range(-(-complete // TILE_ROOTS))):
            wanted = min(TILE_ROOTS, complete - tile * TILE_ROOTS)
            if self._tiles is None or len(await self._tiles.load(chain, tile)) >= wanted:
                # Earlier tiles are complete if this one is.
                return
            firsts = range(tile * TILE_LEAVES, tile * TILE_LEAVES + wanted * SUBTREE_LEAVES, SUBTREE_LEAVES)
            roots = [await self._load_subtree_root(chain, first) for first in firsts]
            await self._tiles.save(chain, tile, [root for root in roots if root])

    async def _load_tiles(self, chain: ChainKey, first: int, last: int) -> None:
        """Load the tiles of a range whose roots are not cached."""
        complete = last // SUBTREE_LEAVES * SUBTREE_LEAVES
        for start in range(first // TILE_LEAVES * TILE_LEAVES, complete, TILE_LEAVES):
            end = min(complete, start + TILE_LEAVES)
            if self._tiles is None or (chain, end - SUBTREE_LEAVES) in self._roots:
                continue
            for place, root in enumerate(await self._tiles.load(chain, start // TILE_LEAVES)):
                self._roots.setdefault((chain, start + place * SUBTREE_LEAVES), root)

    async def _load_subtree_root(self, chain: ChainKey, first: int) -> bytes | None:
        root = self._roots.get((chain, first))
        if root is None:
            tree = CompactRange()
            await self._append_leaves(chain, first, first + SUBTREE_LEAVES, tree)
            if tree.size < SUBTREE_LEAVES:
                return None
            root = self._roots[chain, first] = tree.root()
        self._roots.move_to_end((chain, first))
        while len(self._roots) > KNOWN_SUBTREES:
            self._roots.popitem(last=False)
        return root

    async def _append_leaves(self, chain: ChainKey, first: int, last: int, tree: CompactRange) -> None:
        while (have := first + tree.size) < last:
            page = await self._store.hashes(chain, have, limit=min(HASHES_PAGE, last - have))
            if not page:
                return
            leaves = list(map(_parse_leaf, page))
            await asyncio.to_thread(tree.append, leaves)


async def extend_signed_tree(
    store: ChainStore, chain: ChainKey, workspace: str, covered: SignedTree, tip: Tip, until: str
) -> SignedTree:
    """Verify every record after a signed tree up to the tip, and return the extended tree.

    Args:
        store: store of the chain.
        chain: chain of the tree.
        workspace: the workspace's id.
        covered: tree of the last checkpoint; the stored record of its last leaf must be unchanged.
        tip: last record of the new tree.
        until: latest valid time of a record.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the chain is broken, differs from its last checkpoint, or has
            a record whose time is too far ahead of the clock.
    """
    tree = covered.build_full_tree()
    verification = ChainVerification(
        genesis_hash(workspace, chain.target, chain.scope_key), tip.sequence, sequence=tree.size, tree=tree
    )
    if tree.size:
        verification.last_hash, verification.time = covered.last_hash, await _read_signed_time(store, chain, covered)
    await _verify_up_to(store, chain, verification, tip.sequence - 1)
    before = CompactRange(verification.tree.size, [*verification.tree.nodes])
    await _verify_up_to(store, chain, verification, tip.sequence)
    if (
        verification.fault
        or verification.fork
        or verification.sequence != tip.sequence
        or verification.last_hash != tip.hash
    ):
        fault = verification.fault or verification.fork
        raise _refused_error(
            f"broken and not signed: {fault.reason if fault else 'the records differ from the head item'}"
        )
    if verification.time > until:
        raise _refused_error(
            f"not signed: the time of {record_id(verification.sequence)} is ahead of this host's clock"
        )
    return SignedTree(before, verification.last_hash)


async def _read_signed_time(store: ChainStore, chain: ChainKey, covered: SignedTree) -> str:
    """Return the time of the last record that the checkpoint covers; reject the chain if that record was changed."""
    place = covered.before.size + 1
    page = await store.read(chain, place - 1, limit=1, max_bytes=1)
    record = page.records[0] if page.records else None
    if record is None or (record.sequence, record.hash, digest(record.canonical)) != (
        place,
        covered.last_hash,
        covered.last_hash,
    ):
        raise _refused_error(f"not the one that its last checkpoint was signed for: {record_id(place)} differs")
    time = parse_content_time(record)
    if not is_time(time):
        raise _refused_error(f"broken and not signed: {describe_invalid_time(record_id(place))}")
    return time


async def _verify_up_to(store: ChainStore, chain: ChainKey, verification: ChainVerification, last: int) -> None:
    while verification.fault is None and verification.sequence < last:
        before = verification.sequence
        await stream_records(store, chain, verification, last)
        if verification.sequence == before:
            return


def _parse_leaf(hashed: str) -> bytes:
    try:
        return bytes.fromhex(hashed)
    except ValueError:
        raise _refused_error("broken: a stored Hash is invalid") from None


def _refused_error(reason: str) -> WorkspaceError:
    return WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", f"The chain is {reason}.")


@dataclass(frozen=True, slots=True)
class MerkleInclusionProof:
    """Proof that the Merkle tree of a chain contains a record.

    Attributes:
        leaf_index: sequence of the record, minus 1.
        size: number of leaves of the tree.
        hashes: audit path, RFC 6962 section 2.1.1.
    """

    leaf_index: int
    size: int
    hashes: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class MerkleConsistencyProof:
    """Proof that the Merkle tree of a chain begins with all leaves of an earlier, smaller tree.

    Attributes:
        old: number of leaves of the smaller tree.
        size: number of leaves of the tree.
        hashes: consistency proof, RFC 6962 section 2.1.2.
    """

    old: int
    size: int
    hashes: Sequence[bytes]


class Proofs:
    """Creates proofs from the stored hashes. The recipient checks them against a signed root.

    Args:
        store: store of the chains.
        trees: trees of these chains.
    """

    def __init__(self, store: ChainStore, trees: ChainTrees) -> None:
        self._store = store
        self._trees = trees

    async def prove_inclusion(self, chain: ChainKey, sequence: int, size: int) -> MerkleInclusionProof:
        """Prove that the tree of a chain's first ``size`` records contains the record at a sequence.

        Raises:
            WorkspaceError: INVALID if ``size`` is not 1 to the chain's length, or ``sequence`` not 1 to ``size``.
        """
        await self._validate_size(chain, "size", size)
        if not 1 <= sequence <= size:
            raise invalid("sequence", f"must be 1 to size, {size}")
        hashes = await self._build_roots(chain, inclusion_ranges(sequence - 1, size))
        return MerkleInclusionProof(sequence - 1, size, hashes)

    async def prove_consistency(self, chain: ChainKey, old: int, size: int) -> MerkleConsistencyProof:
        """Prove that the tree of a chain's first ``size`` records begins with the tree of its first ``old`` records.

        Raises:
            WorkspaceError: INVALID if ``size`` is not 1 to the chain's length, or ``from`` not 1 to ``size``.
        """
        await self._validate_size(chain, "size", size)
        if not 1 <= old <= size:
            raise invalid("from", f"must be 1 to size, {size}")
        return MerkleConsistencyProof(old, size, await self._build_roots(chain, consistency_ranges(old, size)))

    async def _validate_size(self, chain: ChainKey, field: str, size: int) -> None:
        length = (await self._store.tip(chain)).sequence
        if not 1 <= size <= length:
            raise invalid(field, f"must be 1 to the length of the chain, {length}")

    async def _build_roots(self, chain: ChainKey, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [(await self._trees.build_tree(chain, first, last)).root() for first, last in ranges]
