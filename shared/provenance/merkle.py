"""Merkle trees of RFC 6962 section 2.1 with SHA-256; this module needs only the standard library."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


def hash_leaf(data: bytes) -> bytes:
    """Return the RFC 6962 hash of a leaf of a Merkle tree, from the data of the leaf."""
    return hashlib.sha256(b"\x00" + data).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    """Return the RFC 6962 hash of an inner node from the hashes of its two children."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class CompactRange:
    """Merkle tree, stored as the roots of its complete subtrees, from which the tree can be extended.

    Attributes:
        size: number of the tree's leaves.
        nodes: roots of the complete subtrees, the largest first, one for each bit that is set in ``size``.
    """

    size: int = 0
    nodes: list[bytes] = field(default_factory=list)

    def append(self, leaves: Iterable[bytes]) -> None:
        """Append leaves to the tree; each leaf is given as data, not as a hash."""
        nodes, sha256 = self.nodes, hashlib.sha256
        for data in leaves:
            node = sha256(b"\x00" + data).digest()
            size = self.size
            while size & 1:
                node = sha256(b"\x01" + nodes.pop() + node).digest()
                size >>= 1
            nodes.append(node)
            self.size += 1

    def append_subtree(self, node: bytes, leaf_count: int) -> None:
        """Append a complete subtree to the tree.

        Args:
            node: root hash of the subtree.
            leaf_count: number of the subtree's leaves: a power of two that divides ``size``.
        """
        places = self.size // leaf_count
        while places & 1:
            node = hash_node(self.nodes.pop(), node)
            places >>= 1
        self.nodes.append(node)
        self.size += leaf_count

    def compute_root(self) -> bytes:
        """Return the root hash of the tree (MTH in RFC 6962)."""
        if not self.nodes:
            return hashlib.sha256(b"").digest()
        root = self.nodes[-1]
        for node in reversed(self.nodes[:-1]):
            root = hash_node(node, root)
        return root

    def is_valid(self) -> bool:
        """Return whether this tree is well-formed: as many subtree roots as ``size`` requires, each of 32 bytes."""
        has_all_nodes = self.size >= 0 and len(self.nodes) == self.size.bit_count()
        return has_all_nodes and all(len(node) == 32 for node in self.nodes)  # noqa: PLR2004  SHA-256


class LeafRange(NamedTuple):
    """Range of leaves: the index of its first leaf, and the index after its last leaf."""

    first: int
    end: int


def list_inclusion_proof_ranges(leaf_index: int, tree_size: int) -> list[LeafRange]:
    """Return the ranges of leaves for a leaf's audit path; each hash of the path is the root of one range.

    The ranges are in the order of the path, which is PATH(index, D[size]) in RFC 6962.

    Args:
        leaf_index: index of the leaf, from 0 to ``tree_size`` - 1.
        tree_size: number of the tree's leaves.
    """
    ranges: list[LeafRange] = []
    first, last = 0, tree_size
    while last - first > 1:
        middle = first + _compute_left_subtree_size(last - first)
        if leaf_index < middle:
            ranges.append(LeafRange(middle, last))
            last = middle
        else:
            ranges.append(LeafRange(first, middle))
            first = middle
    return ranges[::-1]


def list_consistency_proof_ranges(old_tree_size: int, tree_size: int) -> list[LeafRange]:
    """Return the ranges of leaves for a consistency proof; each hash of the proof is the root of one range.

    The ranges are in the order of the proof, which is PROOF(old, D[size]) in RFC 6962.

    Args:
        old_tree_size: number of the earlier tree's leaves, 1 to ``tree_size``.
        tree_size: number of the later tree's leaves.
    """
    ranges: list[LeafRange] = []
    first, last = 0, tree_size
    while old_tree_size != last:
        middle = first + _compute_left_subtree_size(last - first)
        if old_tree_size <= middle:
            ranges.append(LeafRange(middle, last))
            last = middle
        else:
            ranges.append(LeafRange(first, middle))
            first = middle
    if first:
        ranges.append(LeafRange(first, last))
    return ranges[::-1]


def is_included(leaf_data: bytes, leaf_index: int, tree_size: int, audit_path: Sequence[bytes], root: bytes) -> bool:
    """Return whether an audit path proves that a tree contains a leaf (RFC 9162 section 2.1.3.2).

    Args:
        leaf_data: data of the leaf.
        leaf_index: index of the leaf, from 0.
        tree_size: number of the tree's leaves.
        audit_path: audit path of the leaf.
        root: root hash of the tree.
    """
    if not 0 <= leaf_index < tree_size:
        return False
    node, place, last = hash_leaf(leaf_data), leaf_index, tree_size - 1
    for step in audit_path:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = hash_node(step, node)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            node = hash_node(node, step)
        place, last = place >> 1, last >> 1
    return last == 0 and node == root


def is_consistent(old_tree_size: int, tree_size: int, old_root: bytes, root: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that a tree begins with all leaves of an earlier tree (RFC 9162 section 2.1.4.2).

    Args:
        old_tree_size: number of the earlier tree's leaves.
        tree_size: number of the later tree's leaves.
        old_root: root hash of the earlier tree.
        root: root hash of the later tree.
        proof: consistency proof.
    """
    if not 0 < old_tree_size <= tree_size:
        return False
    if old_tree_size == tree_size:
        return not proof and old_root == root
    steps = [old_root, *proof] if old_tree_size & (old_tree_size - 1) == 0 else list(proof)
    if not steps:
        return False
    place, last = old_tree_size - 1, tree_size - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    older = newer = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            older, newer = hash_node(step, older), hash_node(step, newer)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            newer = hash_node(newer, step)
        place, last = place >> 1, last >> 1
    return last == 0 and older == old_root and newer == root


def _compute_left_subtree_size(size: int) -> int:
    """Return the number of leaves in a tree's left subtree: the largest power of two smaller than ``size``.

    ``size`` must be at least 2.
    """
    return 1 << ((size - 1).bit_length() - 1)
