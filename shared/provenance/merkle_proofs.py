"""Merkle proofs that the tree of a chain contains a record, or begins with all leaves of an earlier tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import WorkspaceError, build_invalid_field_error
from shared.observability.logs import fields, get_logger
from shared.provenance.chain_trees import ChainTrees, leaf_data_from_record_hash
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.merkle import (
    LeafRange,
    is_consistent,
    is_included,
    list_consistency_proof_ranges,
    list_inclusion_proof_ranges,
)
from shared.provenance.merkle_tiles import SUBTREE_LEAVES
from shared.provenance.notes import NoteError
from shared.provenance.ports import ChainKey, ChainStore

_LOG = get_logger("provenance")


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

    If a proof does not match a signed root, another process may have repaired the stored roots of subtrees. The cached
    roots are then loaded again, and the proof is built once more, at most once a minute for a chain.

    Args:
        store: store of the chains.
        trees: computes the Merkle trees of these chains.
        checkpoints: reads the signed roots; None to compare proofs with no roots.
    """

    def __init__(self, store: ChainStore, trees: ChainTrees, checkpoints: Checkpoints | None = None) -> None:
        self._store = store
        self._trees = trees
        self._checkpoints = checkpoints

    async def prove_inclusion(self, chain: ChainKey, sequence: int, tree_size: int) -> MerkleInclusionProof:
        """Prove that the tree of a chain's first ``tree_size`` records contains the record ``sequence``.

        Raises:
            WorkspaceError: INVALID if ``tree_size`` is not between 1 and the chain's length, or ``sequence`` not
                between 1 and ``tree_size``.
        """
        await self._require_valid_tree_size(chain, "size", tree_size)
        if not 1 <= sequence <= tree_size:
            raise build_invalid_field_error("sequence", f"must be from 1 to `size`, which is {tree_size}")
        proof = await self.build_inclusion_proof(chain, sequence, tree_size)
        if tree_size < SUBTREE_LEAVES or not await self._contradicts_signed_root(chain, proof):
            return proof
        # Also if they are not due: a concurrent call has possibly just reloaded the roots.
        self._trees.forget_cached_roots_if_due(chain)
        return await self.build_inclusion_proof(chain, sequence, tree_size)

    async def prove_consistency(self, chain: ChainKey, old_tree_size: int, tree_size: int) -> MerkleConsistencyProof:
        """Prove that a chain's tree of ``tree_size`` records begins with its tree of ``old_tree_size`` records.

        Raises:
            WorkspaceError: INVALID if ``tree_size`` is not between 1 and the chain's length, or ``old_tree_size`` not
                between 1 and ``tree_size``.
        """
        await self._require_valid_tree_size(chain, "size", tree_size)
        if not 1 <= old_tree_size <= tree_size:
            raise build_invalid_field_error("from", f"must be from 1 to `size`, which is {tree_size}")
        proof = await self.build_consistency_proof(chain, old_tree_size, tree_size)
        if tree_size < SUBTREE_LEAVES or not await self._contradicts_signed_roots(chain, proof):
            return proof
        self._trees.forget_cached_roots_if_due(chain)
        return await self.build_consistency_proof(chain, old_tree_size, tree_size)

    async def build_inclusion_proof(self, chain: ChainKey, sequence: int, tree_size: int) -> MerkleInclusionProof:
        """Build an inclusion proof like :meth:`prove_inclusion`, without a check of ``sequence`` and ``tree_size``."""
        hashes = await self._compute_range_roots(chain, list_inclusion_proof_ranges(sequence - 1, tree_size))
        return MerkleInclusionProof(sequence - 1, tree_size, hashes)

    async def build_consistency_proof(
        self, chain: ChainKey, old_tree_size: int, tree_size: int
    ) -> MerkleConsistencyProof:
        """Build a consistency proof like :meth:`prove_consistency`, without a check of the sizes."""
        return MerkleConsistencyProof(
            old_tree_size,
            tree_size,
            await self._compute_range_roots(chain, list_consistency_proof_ranges(old_tree_size, tree_size)),
        )

    async def _contradicts_signed_root(self, chain: ChainKey, proof: MerkleInclusionProof) -> bool:
        """Return whether a checkpoint of the proof's size signs another root than the proof gives."""
        root = await self._find_signed_root(chain, proof.size)
        if root is None:
            return False
        hashes = await self._store.read_hashes(chain, proof.leaf_index, limit=1)
        try:
            leaves = [leaf_data_from_record_hash(each) for each in hashes]
        except WorkspaceError:
            return False  # the proof does not contain this hash, so it can be valid
        return not any(is_included(leaf, proof.leaf_index, proof.size, proof.hashes, root) for leaf in leaves)

    async def _contradicts_signed_roots(self, chain: ChainKey, proof: MerkleConsistencyProof) -> bool:
        """Return whether checkpoints of the proof's sizes sign other roots than the proof gives."""
        old_root, root = [await self._find_signed_root(chain, size) for size in (proof.old, proof.size)]
        if old_root is None or root is None:
            return False
        return not is_consistent(proof.old, proof.size, old_root, root, proof.hashes)

    async def _find_signed_root(self, chain: ChainKey, tree_size: int) -> bytes | None:
        """Return the root that a checkpoint of this size signs; None if there is none or it cannot be verified."""
        if self._checkpoints is None:
            return None
        try:
            stored = await self._checkpoints.find_by_size(chain, tree_size)
            return (await self._checkpoints.verify_and_parse_checkpoint(chain, stored)).root if stored else None
        except (NoteError, WorkspaceError) as error:
            extra = fields(target=chain.target, cause=str(error))
            _LOG.warning("a proof could not be compared with the signed root", extra=extra)
            return None

    async def _require_valid_tree_size(self, chain: ChainKey, field_name: str, tree_size: int) -> None:
        length = (await self._store.read_tip(chain)).sequence
        if length == 0:
            raise build_invalid_field_error(field_name, "the chain has no records, so it has no proofs")
        if not 1 <= tree_size <= length:
            raise build_invalid_field_error(
                field_name, f"must be from 1 to {length}, the number of records in the chain"
            )

    async def _compute_range_roots(self, chain: ChainKey, ranges: Sequence[LeafRange]) -> list[bytes]:
        return [(await self._trees.build_tree(chain, first, last)).compute_root() for first, last in ranges]
