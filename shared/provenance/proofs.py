"""Proofs that a record is in a checkpoint, and that a later checkpoint contains an earlier one."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import invalid
from shared.provenance.growth import Trees
from shared.provenance.merkle import consistency_ranges, inclusion_ranges
from shared.provenance.ports import ChainKey, ChainStore


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """Shows that a tree has a leaf.

    Attributes:
        leaf_index: sequence - 1.
        size: of the tree.
        hashes: the audit path, RFC 6962 section 2.1.1.
    """

    leaf_index: int
    size: int
    hashes: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """Shows that a tree begins with all the leaves of a smaller one.

    Attributes:
        old: size of the smaller tree.
        size: of the tree.
        hashes: RFC 6962 section 2.1.2.
    """

    old: int
    size: int
    hashes: Sequence[bytes]


class Proofs:
    """Makes proofs from the stored hashes; whoever receives one checks it against a signed root.

    Args:
        store: keeps the chains.
        trees: made from it.
    """

    def __init__(self, store: ChainStore, trees: Trees) -> None:
        self._store = store
        self._trees = trees

    async def inclusion(self, chain: ChainKey, sequence: int, size: int) -> InclusionProof:
        """Return the proof that the record of a sequence is in the tree of a size.

        Raises:
            WorkspaceError: INVALID naming ``size`` (1 to the chain's length) or ``sequence`` (1 to size).
        """
        await self._within(chain, "size", size)
        if not 1 <= sequence <= size:
            raise invalid("sequence", f"must be 1 to size, {size}")
        hashes = await self._roots(chain, inclusion_ranges(sequence - 1, size))
        return InclusionProof(sequence - 1, size, hashes)

    async def consistency(self, chain: ChainKey, old: int, size: int) -> ConsistencyProof:
        """Return the proof that the tree of a size begins with the tree of a smaller or equal one.

        Raises:
            WorkspaceError: INVALID naming ``size`` (1 to the chain's length) or ``from`` (1 to size).
        """
        await self._within(chain, "size", size)
        if not 1 <= old <= size:
            raise invalid("from", f"must be 1 to size, {size}")
        return ConsistencyProof(old, size, await self._roots(chain, consistency_ranges(old, size)))

    async def _within(self, chain: ChainKey, field: str, size: int) -> None:
        length = (await self._store.tip(chain)).sequence
        if not 1 <= size <= length:
            raise invalid(field, f"must be 1 to the length of the chain, {length}")

    async def _roots(self, chain: ChainKey, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [(await self._trees.of(chain, first, last)).root() for first, last in ranges]
