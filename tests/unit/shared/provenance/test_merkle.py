"""Tests of Merkle trees, compared with published test vectors and with the recursive definition in RFC 6962."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oi.verification.merkle import is_consistent, is_included

from shared.provenance.merkle import (
    CompactRange,
    hash_leaf,
    hash_node,
    list_consistency_proof_ranges,
    list_inclusion_proof_ranges,
)

LEAVES = [bytes.fromhex(text) for text in (
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
)]  # fmt: skip
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""The trees that Certificate Transparency's reference implementations are tested with."""
SIZES = st.integers(1, 70)


def compute_reference_root(leaves: list[bytes]) -> bytes:
    """Return the root of a Merkle tree by the definition of RFC 6962 section 2.1."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hash_leaf(leaves[0])
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hash_node(compute_reference_root(leaves[:split]), compute_reference_root(leaves[split:]))


def compute_root(leaves: list[bytes]) -> bytes:
    """Return the Merkle root computed from a compact range."""
    tree = CompactRange()
    tree.append(leaves)
    assert tree.is_valid()
    return tree.compute_root()


def build_leaves(size: int) -> list[bytes]:
    """Return the given number of different leaves for a Merkle tree."""
    return [number.to_bytes(32) for number in range(size)]


@pytest.mark.parametrize("size", range(1, 9))
def test_published_merkle_roots_are_computed(size: int) -> None:
    """The roots of the published reference trees are computed correctly."""
    assert compute_root(LEAVES[:size]).hex() == ROOTS[size - 1]


def test_the_root_of_the_empty_tree_is_a_hash_of_nothing() -> None:
    """The root of an empty Merkle tree is the SHA-256 of no bytes (RFC 6962)."""
    assert compute_root([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.integers(0, 70), st.integers(0, 70))
def test_extended_trees_equal_whole_trees(first: int, more: int) -> None:
    """A Merkle tree that is built in two steps has the same root as a tree that is built at once."""
    leaves = build_leaves(first + more)
    tree = CompactRange()
    tree.append(leaves[:first])
    tree.append(leaves[first:])
    assert tree.compute_root() == compute_reference_root(leaves)


@given(SIZES, st.data())
def test_an_inclusion_proof_is_valid_only_for_its_leaf(size: int, data: st.DataObject) -> None:
    """An inclusion proof is valid only with its own leaf, index, size, root and path."""
    index = data.draw(st.integers(0, size - 1))
    leaves = build_leaves(size)
    path = [compute_reference_root(leaves[first:last]) for first, last in list_inclusion_proof_ranges(index, size)]
    whole = compute_reference_root(leaves)
    assert is_included(leaves[index], index, size, path, whole)
    assert not is_included(b"other", index, size, path, whole)
    assert not is_included(leaves[index], index, size, path, hash_leaf(b"other"))
    assert not is_included(leaves[index], index, size, [*path, whole], whole)
    assert not is_included(leaves[index], size, size, path, whole)
    if path:
        assert not is_included(leaves[index], index, size, path[:-1], whole)
        assert not is_included(leaves[index], index, size, [whole, *path[1:]], whole)
        assert not is_included(leaves[index], index ^ 1, size, path, whole)


@given(SIZES, st.data())
def test_a_consistency_proof_is_valid_only_for_its_roots(size: int, data: st.DataObject) -> None:
    """A consistency proof is valid only with its own roots and hashes."""
    old = data.draw(st.integers(1, size))
    leaves = build_leaves(size)
    proof = [compute_reference_root(leaves[first:last]) for first, last in list_consistency_proof_ranges(old, size)]
    older, whole = compute_reference_root(leaves[:old]), compute_reference_root(leaves)
    assert is_consistent(old, size, older, whole, proof)
    assert not is_consistent(old, size, hash_leaf(b"other"), whole, proof)
    assert not is_consistent(old, size, older, hash_leaf(b"other"), proof)
    assert not is_consistent(old, size, older, whole, [*proof, whole])
    assert not is_consistent(0, size, older, whole, proof)
    assert not is_consistent(size + 1, size, older, whole, proof)
    for place in range(len(proof)):
        assert not is_consistent(old, size, older, whole, [*proof[:place], hash_leaf(b"x"), *proof[place + 1 :]])


def test_published_proofs_are_computed() -> None:
    """The proofs for the published reference tree equal the published proofs."""
    leaves = LEAVES
    path = [compute_reference_root(leaves[first:last]).hex() for first, last in list_inclusion_proof_ranges(5, 8)]
    assert path == [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]
    proof = [compute_reference_root(leaves[first:last]).hex() for first, last in list_consistency_proof_ranges(6, 8)]
    assert proof == [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]
