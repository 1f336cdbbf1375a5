"""Inclusion proofs of many records of one chain, created in ascending order of the records."""

from bisect import bisect_left
from collections.abc import Sequence

from shared.errors import Kind, WorkspaceError
from shared.provenance.chain_trees import ChainTrees, leaf_data_from_record_hash
from shared.provenance.merkle import hash_leaf, hash_node, list_inclusion_proof_ranges
from shared.provenance.merkle_proofs import MerkleInclusionProof
from shared.provenance.merkle_tiles import SUBTREE_LEAVES
from shared.provenance.ports import ChainKey, ChainStore
from shared.provenance.signed_tree import build_checkpoint_refused_error


class InclusionProofs:
    """Creator of proofs that a signed Merkle tree contains certain records; each part of the chain is read only once.

    Args:
        store: store of the chain.
        trees: computes the Merkle trees of chains.
        chain: chain of the records.
        size: number of records in the signed tree.
    """

    def __init__(self, store: ChainStore, trees: ChainTrees, chain: ChainKey, size: int) -> None:
        self._store = store
        self._trees = trees
        self._chain = chain
        self._size = size
        self._subtree = -1
        self._hashes: list[bytes] = []
        self._inside: dict[tuple[int, int], bytes] = {}
        self._outside: dict[tuple[int, int], bytes] = {}

    def get_record_hash(self, sequence: int) -> bytes:
        """Return the stored ``Hash`` of a record as bytes; call this directly after :meth:`prove` for this record."""
        return self._hashes[(sequence - 1) % SUBTREE_LEAVES]

    async def prove(self, sequence: int) -> MerkleInclusionProof:
        """Return the inclusion proof of a record; call this in ascending order of the records' sequence numbers.

        Raises:
            WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if a record of the tree is missing, a stored Hash is
                invalid, or the stored hashes differ from the cached subtree roots; UNAVAILABLE if the store does not
                respond.
        """
        subtree = (sequence - 1) // SUBTREE_LEAVES
        if subtree != self._subtree:
            await self._load_subtree(subtree)
        ranges = list_inclusion_proof_ranges(sequence - 1, self._size)
        hashes = [await self._compute_root_of_leaves(first, last) for first, last in ranges]
        return MerkleInclusionProof(sequence - 1, self._size, hashes)

    async def can_prove(self, record_sequences: Sequence[int]) -> bool:
        """Return whether :meth:`prove` succeeds for these records: all hashes that it needs are stored and valid.

        The records are divided into subtrees of :data:`SUBTREE_LEAVES` records. The proofs of all records in one
        subtree need the same stored hashes, so this method tries only one record of each subtree.

        Args:
            record_sequences: sequence numbers of the records, in ascending order.

        Raises:
            WorkspaceError: UNAVAILABLE if the store does not respond.
        """
        position = 0
        try:
            while position < len(record_sequences):
                await self.prove(record_sequences[position])
                position = bisect_left(record_sequences, (self._subtree + 1) * SUBTREE_LEAVES + 1, position + 1)
        except WorkspaceError as error:
            if error.kind is not Kind.CONFLICT:
                raise
            return False
        return True

    async def _load_subtree(self, subtree_number: int) -> None:
        first = subtree_number * SUBTREE_LEAVES
        count = min(SUBTREE_LEAVES, self._size - first)
        hashes = await self._store.read_hashes(self._chain, first, limit=count)
        if len(hashes) < count:
            raise build_checkpoint_refused_error(
                f"The chain has fewer records than the {self._size} that its checkpoint covers."
            )
        self._hashes = list(map(leaf_data_from_record_hash, hashes))
        self._inside = {(first + index, first + index + 1): hash_leaf(one) for index, one in enumerate(self._hashes)}
        if count == SUBTREE_LEAVES:
            await self._require_hashes_matching_cached_root(first)
        self._subtree = subtree_number

    async def _require_hashes_matching_cached_root(self, first_leaf: int) -> None:
        """Raise an error if the hashes that were read differ from the cached root of their complete subtree.

        A cached root can match the signed root although a hash below it was changed.

        Args:
            first_leaf: index of the first leaf of the subtree.
        """
        last = first_leaf + SUBTREE_LEAVES
        tree = await self._trees.build_tree(self._chain, first_leaf, last)
        if tree.compute_root() != self._compute_root_in_loaded_subtree(first_leaf, last):
            raise build_checkpoint_refused_error(
                "The chain is broken: its stored hashes differ from their subtree root."
            )

    async def _compute_root_of_leaves(self, first_leaf: int, end_leaf: int) -> bytes:
        """Return the root of a range of leaves: in the loaded subtree, or else from the tree of the whole chain."""
        start = self._subtree * SUBTREE_LEAVES
        if start <= first_leaf and end_leaf <= start + SUBTREE_LEAVES:
            return self._compute_root_in_loaded_subtree(first_leaf, end_leaf)
        if (first_leaf, end_leaf) not in self._outside:
            tree = await self._trees.build_tree(self._chain, first_leaf, end_leaf)
            self._outside[first_leaf, end_leaf] = tree.compute_root()
        return self._outside[first_leaf, end_leaf]

    def _compute_root_in_loaded_subtree(self, first_leaf: int, end_leaf: int) -> bytes:
        """Return the root of a range of leaves in the loaded subtree; computed roots are cached."""
        root = self._inside.get((first_leaf, end_leaf))
        if root is None:
            middle = first_leaf + (1 << (end_leaf - first_leaf - 1).bit_length() - 1)
            root = hash_node(
                self._compute_root_in_loaded_subtree(first_leaf, middle),
                self._compute_root_in_loaded_subtree(middle, end_leaf),
            )
            self._inside[first_leaf, end_leaf] = root
        return root
