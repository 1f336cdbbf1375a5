"""Write the test vectors for audit proofs, tests/vectors/proofs.json (``python -m scripts.proof_vectors``).

The vectors are a small audit chain with signed checkpoints and Merkle proofs (RFC 6962), for tests in any language.
"""

import hashlib
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.merkle import CompactRange, list_consistency_proof_ranges, list_inclusion_proof_ranges
from shared.provenance.notes import CheckpointContent, VerifierKey, build_checkpoint_origin, build_key_name, format_note
from shared.provenance.records import build_event_draft, parse_record, seal_record

TARGET = Path(__file__).parents[1] / "tests" / "vectors" / "proofs.json"
WORKSPACE, CHAIN, SCOPE = "plant-a", "DomainEvents", "batch (7) +ü/*"
RECORDS = 13
SIZES = (1, 5, 8, 13)
STATES: tuple[dict[str, Any], ...] = (
    {"ph": 7.4, "count": 1e20, "tiny": 1e-7, "limits": [6.5, 7.5]},
    {"Grüße": "\u20ac \U0001f600", "\ufb33": 1, "\U0001f600": 2, "empty": {}, "none": None},
    {"control": "\u0000\u001f\u007f", "quote": '"\\/', "zero": -0.0, "__proto__": {"toJSON": "text"}},
)


def build_proof_vectors_json() -> str:
    """Return the test vectors as JSON text; the text is the same on every run."""
    key = ec.derive_private_key(int.from_bytes(hashlib.sha256(b"test vectors").digest()), ec.SECP256R1())
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    verifier = VerifierKey(build_key_name(WORKSPACE), key.public_key().public_bytes(serialization.Encoding.DER, public))
    records = _build_audit_records()
    leaves = [bytes.fromhex(record["Hash"]) for record in records]
    whole = {
        "rule": "leaf = the 32 bytes of Hash, index = sequence - 1; RFC 6962 trees; C2SP notes of signature type 0x02",
        "workspace": WORKSPACE,
        "target": CHAIN,
        "scopeKey": SCOPE,
        "genesis": compute_genesis_hash(WORKSPACE, CHAIN, SCOPE),
        "verifierKey": str(verifier),
        "records": records,
        "checkpoints": [_build_checkpoint(leaves[:size], key, verifier) for size in SIZES],
        "inclusion": [
            _build_inclusion_proof(leaves, sequence, size) for size in SIZES for sequence in range(1, size + 1)
        ],
        "growth": [_build_consistency_proof(leaves, old, size) for size in SIZES for old in range(1, size + 1)],
    }
    return json.dumps(whole, indent=1) + "\n"


def _build_audit_records() -> list[dict[str, Any]]:
    previous, records = compute_genesis_hash(WORKSPACE, CHAIN, SCOPE), []
    for sequence in range(1, RECORDS + 1):
        event = {"ActionType": "Update", "EntityType": "Batch", "EntityID": "B-7", "AfterState": STATES[sequence % 3]}
        time = f"2026-01-05T08:00:{sequence:02d}.000000Z"
        record = seal_record(build_event_draft("editor@plant-a", event), sequence, time, previous, "")
        records.append(parse_record(record.canonical, record.hash))
        previous = record.hash
    return records


def _compute_merkle_root(leaves: list[bytes]) -> bytes:
    tree = CompactRange()
    tree.append(leaves)
    return tree.compute_root()


def _build_checkpoint(leaves: list[bytes], key: ec.EllipticCurvePrivateKey, verifier: VerifierKey) -> dict[str, Any]:
    checkpoint = CheckpointContent(
        build_checkpoint_origin(WORKSPACE, CHAIN, SCOPE), len(leaves), _compute_merkle_root(leaves)
    )
    signature = key.sign(checkpoint.text.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
    note = format_note(checkpoint.text, verifier, signature).decode()
    return {
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "rootHash": _to_base64(checkpoint.root),
        "signedNote": note,
    }


def _build_inclusion_proof(leaves: list[bytes], sequence: int, size: int) -> dict[str, Any]:
    path = [
        _to_base64(_compute_merkle_root(leaves[first:last]))
        for first, last in list_inclusion_proof_ranges(sequence - 1, size)
    ]
    return {"sequence": sequence, "size": size, "hashes": path}


def _build_consistency_proof(leaves: list[bytes], old_size: int, size: int) -> dict[str, Any]:
    path = [
        _to_base64(_compute_merkle_root(leaves[first:last]))
        for first, last in list_consistency_proof_ranges(old_size, size)
    ]
    return {
        "from": old_size,
        "size": size,
        "fromRoot": _to_base64(_compute_merkle_root(leaves[:old_size])),
        "hashes": path,
    }


def _to_base64(data: bytes) -> str:
    return b64encode(data).decode()


if __name__ == "__main__":
    TARGET.write_text(build_proof_vectors_json(), encoding="utf-8")
