"""Tests that the proof vectors are current and valid."""

import json
from base64 import b64decode

from oi.verification.export import verify_export_and_count_records
from oi.verification.merkle import is_consistent, is_included
from oi.verification.notes import VerifierKey, verify_and_parse_checkpoint

from scripts.proof_vectors import TARGET, build_proof_vectors_json
from shared.provenance.hash_rule import parse_integer_or_exact_float


def test_the_proof_vectors_are_current() -> None:
    """tests/vectors/proofs.json equals the output of scripts/proof_vectors.py."""
    assert TARGET.read_text(encoding="utf-8") == build_proof_vectors_json(), (
        "run: .venv/bin/python -m scripts.proof_vectors"
    )


def test_the_proof_vectors_are_valid() -> None:
    """Each checkpoint and each inclusion and consistency proof in the vectors is valid."""
    whole = json.loads(TARGET.read_text(encoding="utf-8"), parse_int=parse_integer_or_exact_float)
    place = (whole["workspace"], whole["target"], whole["scopeKey"])
    key = VerifierKey.parse(whole["verifierKey"])
    notes = (one["signedNote"].encode() for one in whole["checkpoints"])
    opened = {each.size: each for each in (verify_and_parse_checkpoint(note, [key], *place).content for note in notes)}
    for checkpoint in opened.values():
        assert verify_export_and_count_records(whole["records"], *place, checkpoint) == len(whole["records"])
    for proof in whole["inclusion"]:
        leaf = bytes.fromhex(whole["records"][proof["sequence"] - 1]["Hash"])
        path, size = [b64decode(one) for one in proof["hashes"]], proof["size"]
        assert is_included(leaf, proof["sequence"] - 1, size, path, opened[size].root)
    for growth in whole["growth"]:
        path, size = [b64decode(one) for one in growth["hashes"]], growth["size"]
        assert is_consistent(growth["from"], size, b64decode(growth["fromRoot"]), opened[size].root, path)
