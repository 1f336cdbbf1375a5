"""Tests that the receipt vectors are current, and another implementation agrees with them."""

import json

import scitt_cose

from scripts import receipt_vectors
from scripts.proof_vectors import TARGET
from tests import receipts


def test_the_receipt_vectors_are_current() -> None:
    """tests/vectors/receipts.json equals the output of scripts/receipt_vectors.py."""
    current = receipt_vectors.build_receipt_vectors_json()
    command = ".venv/bin/python -m scripts.receipt_vectors"
    assert receipt_vectors.TARGET.read_text(encoding="utf-8") == current, f"run: {command}"


def test_scitt_cose_agrees_with_the_receipt_vectors() -> None:
    """scitt-cose accepts each valid receipt and rejects each invalid one, except two that contain several proofs."""
    vectors = json.loads(receipt_vectors.TARGET.read_text(encoding="utf-8"))
    hashes = [record["Hash"] for record in json.loads(TARGET.read_text(encoding="utf-8"))["records"]]
    key_set = bytes.fromhex(vectors["coseKeySet"])
    [jwk] = vectors["jwks"]["keys"]
    pem = receipts.convert_key(jwk)
    for each in vectors["inclusion"]:
        receipt = bytes.fromhex(each["receipt"])
        found = receipts.verify_inclusion(receipt, each["hash"], key_set)
        assert (found.ok, found.tree_size, found.leaf_index) == (True, each["size"], each["sequence"] - 1)
    for each in vectors["growth"]:
        sizes = receipts.verify_growth(bytes.fromhex(each["receipt"]), hashes, key_set)
        assert sizes == (each["from"], each["size"])
    accepted = [
        each["reason"]
        for each in vectors["invalid"]
        if scitt_cose.verify_receipt(
            bytes.fromhex(each["receipt"]), leaf_entry_hex=each["hash"], log_public_key_pem=pem
        ).ok
    ]
    # RFC 9942 allows several proofs; the receipts of this service have one.
    assert accepted == ["ten proofs", "both kinds of proofs"]
