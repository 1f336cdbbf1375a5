"""Merkle proofs that the tree of a chain contains a record, or begins with all leaves of an earlier tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import build_invalid_field_error
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.merkle import list_consistency_proof_ranges, list_inclusion_proof_ranges
from shared.provenance.ports import ChainKey, ChainStore


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
        """Prove that the tree of a chain's first ``size`` records contains the record with the number ``sequence``.

        Raises:
            WorkspaceError: INVALID if ``size`` is not between 1 and the chain's length, or ``sequence`` not between 1
                and ``size``.
        """
        await self._validate_size(chain, "size", size)
        if not 1 <= sequence <= size:
            raise build_invalid_field_error("sequence", f"must be from 1 to `size`, which is {size}")
        return await self.build_inclusion_proof(chain, sequence, size)

    async def prove_consistency(self, chain: ChainKey, old_size: int, size: int) -> MerkleConsistencyProof:
        """Prove that the tree of a chain's first ``size`` records begins with the tree of ``old_size`` records.

        Raises:
            WorkspaceError: INVALID if ``size`` is not between 1 and the chain's length, or ``from`` not between 1 and
                ``size``.
        """
        await self._validate_size(chain, "size", size)
        if not 1 <= old_size <= size:
            raise build_invalid_field_error("from", f"must be from 1 to `size`, which is {size}")
        return await self.build_consistency_proof(chain, old_size, size)

    async def build_inclusion_proof(self, chain: ChainKey, sequence: int, size: int) -> MerkleInclusionProof:
        """Build an inclusion proof like :meth:`prove_inclusion`, without a check of ``sequence`` and ``size``."""
        hashes = await self._compute_range_roots(chain, list_inclusion_proof_ranges(sequence - 1, size))
        return MerkleInclusionProof(sequence - 1, size, hashes)

    async def build_consistency_proof(self, chain: ChainKey, old_size: int, size: int) -> MerkleConsistencyProof:
        """Build a consistency proof like :meth:`prove_consistency`, without a check of the sizes."""
        return MerkleConsistencyProof(
            old_size, size, await self._compute_range_roots(chain, list_consistency_proof_ranges(old_size, size))
        )

    async def _validate_size(self, chain: ChainKey, field: str, size: int) -> None:
        length = (await self._store.read_tip(chain)).sequence
        if length == 0:
            raise build_invalid_field_error(field, "the chain has no records, so it has no proofs")
        if not 1 <= size <= length:
            raise build_invalid_field_error(field, f"must be from 1 to {length}, the number of records in the chain")

    async def _compute_range_roots(self, chain: ChainKey, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [(await self._trees.build_tree(chain, first, last)).compute_root() for first, last in ranges]
