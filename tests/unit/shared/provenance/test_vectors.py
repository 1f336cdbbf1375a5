"""The published test vectors are correct, and docs/explanation/audit-trail.md shows them."""

import hashlib
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import rfc8785
import scitt_cose
from oi.verification.export import verify_export
from oi.verification.merkle import is_consistent, is_included
from oi.verification.notes import VerifierKey, build_origin, open_checkpoint

from scripts import receipt_vectors
from scripts.proof_vectors import TARGET, build_vectors
from shared.provenance.hash_rule import compute_genesis_hash, parse_json_integer
from shared.provenance.merkle import CompactRange
from shared.provenance.records import draft_record, seal_record
from tests import receipts

ROOT = Path(__file__).parents[4]
CHAINS = json.loads((ROOT / "tests" / "vectors" / "chain.json").read_text(encoding="utf-8"))["chains"]
PAGE = (ROOT / "docs" / "explanation" / "audit-trail.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain["target"])
def test_the_vectors_follow_from_the_rule(chain: dict[str, Any]) -> None:
    """Genesis hashes, hashes, links and roots match hashlib and rfc8785, and the engine writes the same bytes."""
    lines = ("oi-provenance/v1", chain["workspace"], chain["target"], chain["scopeKey"])
    previous = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert chain["genesis"] == previous == compute_genesis_hash(*lines[1:])
    records = []
    for sequence, vector in enumerate(chain["records"], start=1):
        canonical = bytes.fromhex(vector["canonicalHex"])
        value = json.loads(canonical, parse_int=parse_json_integer)
        assert (value["PreviousHash"], rfc8785.dumps(value)) == (previous, canonical)
        previous = hashlib.sha256(canonical).hexdigest()
        assert vector["hash"] == previous
        body = {name: value[name] for name in value if name not in ("RecordID", "Timestamp", "PreviousHash")}
        made = seal_record(draft_record(body), sequence, value["Timestamp"], value["PreviousHash"], "x")
        assert (made.canonical, made.hash) == (canonical, vector["hash"])
        records.append(value | {"Hash": vector["hash"]})
    assert verify_export(records, *lines[1:]) == len(records)
    tree = CompactRange()
    tree.append(bytes.fromhex(vector["hash"]) for vector in chain["records"])
    assert tree.compute_root().hex() == chain["merkleRoot"]


def test_the_page_shows_the_vectors() -> None:
    """The page has genesis hashes, roots and one complete chain for authors of other verifiers."""
    for chain in CHAINS:
        assert chain["genesis"] in PAGE
        assert chain["merkleRoot"] in PAGE
    for vector in CHAINS[0]["records"]:
        assert f"{bytes.fromhex(vector['canonicalHex']).decode()}\n{vector['hash']}\n" in PAGE


def test_the_proof_vectors_are_current() -> None:
    """tests/vectors/proofs.json is the current output of scripts/proof_vectors.py."""
    assert TARGET.read_text(encoding="utf-8") == build_vectors(), "run: .venv/bin/python -m scripts.proof_vectors"


def test_the_proof_vectors_are_valid() -> None:
    """Each checkpoint is valid, and all inclusion and consistency proofs verify."""
    whole = json.loads(TARGET.read_text(encoding="utf-8"), parse_int=parse_json_integer)
    place = (whole["workspace"], whole["target"], whole["scopeKey"])
    key = VerifierKey.parse(whole["verifierKey"])
    notes = (one["signedNote"].encode() for one in whole["checkpoints"])
    opened = {made.size: made for made in (open_checkpoint(note, key, build_origin(*place)) for note in notes)}
    for checkpoint in opened.values():
        assert verify_export(whole["records"], *place, checkpoint) == len(whole["records"])
    for proof in whole["inclusion"]:
        leaf = bytes.fromhex(whole["records"][proof["sequence"] - 1]["Hash"])
        path, size = [b64decode(one) for one in proof["hashes"]], proof["size"]
        assert is_included(leaf, proof["sequence"] - 1, size, path, opened[size].root)
    for growth in whole["growth"]:
        path, size = [b64decode(one) for one in growth["hashes"]], growth["size"]
        assert is_consistent(growth["from"], size, b64decode(growth["fromRoot"]), opened[size].root, path)


def test_the_receipt_vectors_are_current() -> None:
    """tests/vectors/receipts.json is the current output of scripts/receipt_vectors.py."""
    current = receipt_vectors.build_receipt_vectors()
    command = ".venv/bin/python -m scripts.receipt_vectors"
    assert receipt_vectors.TARGET.read_text(encoding="utf-8") == current, f"run: {command}"


def test_scitt_cose_agrees_with_the_receipt_vectors() -> None:
    """Another implementation accepts every receipt, and rejects each invalid one with other than the right proofs."""
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
