"""Merkle trees of audit chains: cached roots of subtrees, extension by newly verified records, and proofs."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from shared.errors import Kind, WorkspaceError, invalid
from shared.provenance.chain_verification import ChainVerification, parse_content_time
from shared.provenance.checkpoint_ports import CheckpointStore
from shared.provenance.hash_rule import (
    compute_digest,
    compute_genesis_hash,
    describe_invalid_time,
    format_record_id,
    is_time,
)
from shared.provenance.merkle import CompactRange, list_consistency_ranges, list_inclusion_ranges
from shared.provenance.parallel import stream_records
from shared.provenance.ports import ChainKey, ChainStore, Tip
from shared.runtime import SYSTEM_RUNTIME, Runtime

SUBTREE_LEAVES: Final = 4_096
TILE_ROOTS: Final = 256
TILE_LEAVES: Final = SUBTREE_LEAVES * TILE_ROOTS
"""Number of leaves that one tile covers: about a million. A tile has 8 KiB."""

_DIGEST: Final = hashlib.sha256().digest_size


class Tiles:
    """Stored roots of complete subtrees of a chain's Merkle tree, so that proofs need not read every record's hash.

    A tile is the list of the roots of 256 consecutive subtrees. Lost tiles are computed again. Tiles need not be
    trusted, because the recipient of a proof checks it against a signed root.

    Args:
        notes: store of the checkpoints, in which the tiles are stored, too.
        prefix: returns the prefix of the names of a chain's tiles.
    """

    def __init__(self, notes: CheckpointStore, prefix: Callable[[ChainKey], str]) -> None:
        self._notes = notes
        self._prefix = prefix

    async def load(self, chain: ChainKey, tile: int) -> Sequence[bytes]:
        """Load one tile of a chain: its 256 roots in order; an empty list if the tile is missing or damaged."""
        content = await self._notes.load_state(self._build_name(chain, tile)) or b""
        roots, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(roots).digest() != digest or len(roots) % _DIGEST:
            return []
        return [roots[start : start + _DIGEST] for start in range(0, len(roots), _DIGEST)]

    async def save(self, chain: ChainKey, tile: int, roots: Sequence[bytes]) -> None:
        """Store the roots of one tile of a chain; replace the tile if it exists."""
        content = b"".join(roots)
        await self._notes.save_state(self._build_name(chain, tile), content + hashlib.sha256(content).digest())

    def _build_name(self, chain: ChainKey, tile: int) -> str:
        return f"{self._prefix(chain)}roots-{tile:06d}"


HASHES_PAGE: Final = 10_000
KNOWN_SUBTREES: Final = 50_000
"""Maximum number of cached subtree roots: enough for 200 million records, in about 10 MB."""


@dataclass(frozen=True, slots=True)
class SignedTree:
    """Merkle tree whose root a checkpoint signs: the last leaf, and the tree of all earlier leaves.

    Attributes:
        before: tree of all leaves except the last one.
        last_hash: ``Hash`` of the last record as hex digits; empty for an empty tree.
    """

    before: CompactRange = field(default_factory=CompactRange)
    last_hash: str = ""

    def build_full_tree(self) -> CompactRange:
        """Build the Merkle tree that the checkpoint signs, including the last leaf."""
        tree = CompactRange(self.before.size, [*self.before.nodes])
        tree.append([bytes.fromhex(self.last_hash)] if self.last_hash else [])
        return tree

    def to_state(self) -> bytes:
        """Serialise the tree to bytes for the checkpoint store; :meth:`from_state` parses them."""
        nodes = [node.hex() for node in self.before.nodes]
        return json.dumps({"size": self.before.size, "nodes": nodes, "last": self.last_hash}).encode()

    @classmethod
    def from_state(cls, state: bytes) -> "SignedTree | None":
        """Parse a tree from the bytes of :meth:`to_state`; None if they are damaged or from an earlier version."""
        try:
            members = json.loads(state)
            before = CompactRange(int(members["size"]), [bytes.fromhex(node) for node in members["nodes"]])
            last = bytes.fromhex(members["last"]).hex()
        except (ValueError, KeyError, TypeError):
            return None
        return cls(before, last) if before.is_valid() else None


class ChainTrees:
    """Computes the Merkle trees of chains from the stored hashes of their records, and caches roots of subtrees.

    If someone changes stored hashes, cached roots still match the signed checkpoints, but newly computed roots do not.

    Args:
        store: store of the chains.
        tiles: stored roots of subtrees, which all processes share; None for a cache in this process only.
        runtime: clock, randomness and threads.
    """

    def __init__(self, store: ChainStore, tiles: Tiles | None = None, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._store = store
        self._tiles = tiles
        self._roots: OrderedDict[tuple[ChainKey, int], bytes] = OrderedDict()
        self._runtime = runtime

    async def build_tree(self, chain: ChainKey, first: int, last: int) -> CompactRange:
        """Build the Merkle tree of a range of a chain's records; records beyond the end of the chain are ignored.

        Args:
            chain: chain of the tree.
            first: index of the first leaf, from 0.
            last: index after the last leaf.
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
        """Build the tree of a chain's first ``size`` records (at least 1), or of all records of a shorter chain."""
        before = await self.build_tree(chain, 0, size - 1)
        last = await self._store.read_hashes(chain, size - 1, limit=1)
        return SignedTree(before, parse_leaf(last[0]).hex() if last else "")

    async def save_tiles(self, chain: ChainKey, size: int) -> None:
        """Store the new tiles (lists of subtree roots) of a chain's tree; existing tiles are not stored again.

        Args:
            chain: chain of the tree.
            size: number of the tree's leaves.
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
        """Load the stored tiles for a range of leaves if the subtree roots of the range are not cached."""
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
            root = self._roots[chain, first] = tree.compute_root()
        self._roots.move_to_end((chain, first))
        while len(self._roots) > KNOWN_SUBTREES:
            self._roots.popitem(last=False)
        return root

    async def _append_leaves(self, chain: ChainKey, first: int, last: int, tree: CompactRange) -> None:
        while (have := first + tree.size) < last:
            page = await self._store.read_hashes(chain, have, limit=min(HASHES_PAGE, last - have))
            if not page:
                return
            leaves = list(map(parse_leaf, page))
            await self._runtime.run_in_thread(tree.append, leaves)


async def extend_signed_tree(
    store: ChainStore, chain: ChainKey, workspace: str, covered: SignedTree, tip: Tip, until: str, *, runtime: Runtime
) -> SignedTree:
    """Verify the records that follow a signed tree, up to the chain's last record (tip); return the extended tree.

    Args:
        store: store of the chain.
        chain: chain of the tree.
        workspace: the workspace's id.
        covered: tree of the last checkpoint; the record of its last leaf must not have changed.
        tip: number and hash of the chain's last record, which is the last leaf of the extended tree.
        until: latest time that a record may have, in the format of records.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the chain is broken, differs from its last checkpoint, or has
            a record whose time is too far ahead of the clock.
    """
    tree = covered.build_full_tree()
    verification = ChainVerification(
        compute_genesis_hash(workspace, chain.target, chain.scope_key), tip.sequence, sequence=tree.size, tree=tree
    )
    if tree.size:
        verification.last_hash, verification.time = covered.last_hash, await _read_signed_time(store, chain, covered)
    await _verify_up_to(store, chain, verification, tip.sequence - 1, runtime)
    before = CompactRange(verification.tree.size, [*verification.tree.nodes])
    await _verify_up_to(store, chain, verification, tip.sequence, runtime)
    if (
        verification.fault
        or verification.fork
        or verification.sequence != tip.sequence
        or verification.last_hash != tip.hash
    ):
        fault = verification.fault or verification.fork
        reason = fault.reason if fault else "the records differ from the head item of the chain"
        raise build_refused_error(f"The chain is broken, so its checkpoint was not signed: {reason}.")
    if verification.time > until:
        raise build_refused_error(
            f"The checkpoint was not signed: the time of {format_record_id(verification.sequence)} is ahead of this "
            "host's clock."
        )
    return SignedTree(before, verification.last_hash)


async def _read_signed_time(store: ChainStore, chain: ChainKey, covered: SignedTree) -> str:
    """Return the time of the last record that the checkpoint covers; raise an error if that record was changed."""
    place = covered.before.size + 1
    page = await store.read(chain, place - 1, limit=1, max_bytes=1)
    record = page.records[0] if page.records else None
    if record is None or (record.sequence, record.hash, compute_digest(record.canonical)) != (
        place,
        covered.last_hash,
        covered.last_hash,
    ):
        raise build_refused_error(
            f"The chain was changed after its last checkpoint was signed: {format_record_id(place)} differs."
        )
    time = parse_content_time(record)
    if not is_time(time):
        raise build_refused_error(
            f"The chain is broken, so its checkpoint was not signed: {describe_invalid_time(format_record_id(place))}."
        )
    return time


async def _verify_up_to(
    store: ChainStore, chain: ChainKey, verification: ChainVerification, last: int, runtime: Runtime
) -> None:
    while verification.fault is None and verification.sequence < last:
        before = verification.sequence
        await stream_records(store, chain, verification, last, runtime=runtime)
        if verification.sequence == before:
            return


def parse_leaf(hashed: str) -> bytes:
    """Convert the stored ``Hash`` of a record to the data of its leaf in the Merkle tree.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the text is not hexadecimal.
    """
    try:
        return bytes.fromhex(hashed)
    except ValueError:
        raise build_refused_error("The chain is broken: a stored Hash is not hexadecimal.") from None


def build_refused_error(detail: str) -> WorkspaceError:
    """Build the error of a chain that differs from its checkpoint or is broken."""
    return WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail)


@dataclass(frozen=True, slots=True)
class MerkleInclusionProof:
    """Proof that the Merkle tree of a chain contains a record.

    Attributes:
        leaf_index: index of the leaf: the record's sequence number minus 1.
        size: number of the tree's leaves.
        hashes: audit path (RFC 6962 section 2.1.1).
    """

    leaf_index: int
    size: int
    hashes: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class MerkleConsistencyProof:
    """Proof that the Merkle tree of a chain begins with all leaves of an earlier, smaller tree.

    Attributes:
        old: number of the earlier tree's leaves.
        size: number of the later tree's leaves.
        hashes: consistency proof (RFC 6962 section 2.1.2).
    """

    old: int
    size: int
    hashes: Sequence[bytes]


class Proofs:
    """Creates Merkle proofs from the stored hashes of records. The recipient checks a proof against a signed root.

    Args:
        store: store of the chains.
        trees: computes the Merkle trees of these chains.
    """

    def __init__(self, store: ChainStore, trees: ChainTrees) -> None:
        self._store = store
        self._trees = trees

    async def prove_inclusion(self, chain: ChainKey, sequence: int, size: int) -> MerkleInclusionProof:
        """Prove that the tree of a chain's first ``size`` records contains the record with a sequence number.

        Raises:
            WorkspaceError: INVALID if ``size`` is not between 1 and the chain's length, or ``sequence`` not between 1
                and ``size``.
        """
        await self._validate_size(chain, "size", size)
        if not 1 <= sequence <= size:
            raise invalid("sequence", f"must be from 1 to `size`, which is {size}")
        return await self.build_inclusion(chain, sequence, size)

    async def prove_consistency(self, chain: ChainKey, old: int, size: int) -> MerkleConsistencyProof:
        """Prove that the tree of a chain's first ``size`` records begins with the tree of its first ``old`` records.

        Raises:
            WorkspaceError: INVALID if ``size`` is not between 1 and the chain's length, or ``from`` not between 1 and
                ``size``.
        """
        await self._validate_size(chain, "size", size)
        if not 1 <= old <= size:
            raise invalid("from", f"must be from 1 to `size`, which is {size}")
        return await self.build_consistency(chain, old, size)

    async def build_inclusion(self, chain: ChainKey, sequence: int, size: int) -> MerkleInclusionProof:
        """Build an inclusion proof without a check that ``size`` is at most the chain's length."""
        hashes = await self._build_roots(chain, list_inclusion_ranges(sequence - 1, size))
        return MerkleInclusionProof(sequence - 1, size, hashes)

    async def build_consistency(self, chain: ChainKey, old: int, size: int) -> MerkleConsistencyProof:
        """Build a consistency proof without a check that the sizes are at most the chain's length."""
        return MerkleConsistencyProof(old, size, await self._build_roots(chain, list_consistency_ranges(old, size)))

    async def _validate_size(self, chain: ChainKey, field: str, size: int) -> None:
        length = (await self._store.read_tip(chain)).sequence
        if not 1 <= size <= length:
            raise invalid(field, f"must be from 1 to {length}, the number of records in the chain")

    async def _build_roots(self, chain: ChainKey, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [(await self._trees.build_tree(chain, first, last)).compute_root() for first, last in ranges]
