"""Write the test vectors for receipts, tests/vectors/receipts.json (``python -m scripts.receipt_vectors``).

The file contains COSE receipts (RFC 9942) for the audit chain in proofs.json, and malformed and forged receipts, which
every verifier must reject.
"""

import hashlib
import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from scripts.proof_vectors import build_proof_vectors_json
from shared.auth.jose import to_jwk
from shared.provenance.cose import RootSignature, build_protected_header, build_signed_bytes, encode_key_set
from shared.provenance.notes import VerifierKey

TARGET: Final = Path(__file__).parents[1] / "tests" / "vectors" / "receipts.json"
ISSUER: Final = "https://plant-a.example"
_COORDINATE: Final = 32


def build_receipt_vectors_json() -> str:
    """Return the test vectors as JSON text; the text is the same on every run."""
    chain = json.loads(build_proof_vectors_json())
    key = ec.derive_private_key(int.from_bytes(hashlib.sha256(b"test vectors").digest()), ec.SECP256R1())
    verifier = VerifierKey.parse(chain["verifierKey"])
    signatures = {
        each["size"]: _sign_root(each["origin"], b64decode(each["rootHash"]), key, verifier)
        for each in chain["checkpoints"]
    }
    whole = {
        "rule": "RFC 9942 with RFC9162_SHA256; leaf = the 32 bytes of Hash; bytes as hexadecimal; the records and the "
        "older roots are those of proofs.json",
        "issuer": ISSUER,
        "coseKeySet": encode_key_set([verifier]).hex(),
        "jwks": {"keys": [{**to_jwk(verifier.parse_public_key()), "kid": verifier.key_id.hex()}]},
        "inclusion": [_build_inclusion_vector(each, chain, signatures) for each in chain["inclusion"]],
        "growth": [
            _build_consistency_vector(each, signatures) for each in chain["growth"] if each["from"] < each["size"]
        ],
        "invalid": list(_build_invalid_receipts(chain, signatures)),
    }
    return json.dumps(whole, indent=1) + "\n"


def _sign_root(origin: str, root: bytes, key: ec.EllipticCurvePrivateKey, verifier: VerifierKey) -> RootSignature:
    protected = build_protected_header(verifier.key_id, ISSUER, origin)
    made = key.sign(build_signed_bytes(protected, root), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
    numbers = decode_dss_signature(made)
    return RootSignature(protected, b"".join(number.to_bytes(_COORDINATE) for number in numbers))


def _build_inclusion_vector(
    proof: dict[str, Any], chain: dict[str, Any], signatures: dict[int, RootSignature]
) -> dict[str, Any]:
    sequence, size, path = proof["sequence"], proof["size"], list(map(b64decode, proof["hashes"]))
    receipt = signatures[size].encode_inclusion_receipt(size, sequence - 1, path)
    return {
        "sequence": sequence,
        "size": size,
        "hash": chain["records"][sequence - 1]["Hash"],
        "receipt": receipt.hex(),
    }


def _build_consistency_vector(proof: dict[str, Any], signatures: dict[int, RootSignature]) -> dict[str, Any]:
    old, size, path = proof["from"], proof["size"], list(map(b64decode, proof["hashes"]))
    receipt = signatures[size].encode_growth_receipt(old, size, path)
    return {"from": old, "size": size, "fromRoot": b64decode(proof["fromRoot"]).hex(), "receipt": receipt.hex()}


def _build_invalid_receipts(chain: dict[str, Any], signatures: dict[int, RootSignature]) -> Iterator[dict[str, Any]]:
    """Yield invalid receipts for the second record in a tree of five records, each with the reason why it is wrong."""
    record = chain["records"][1]["Hash"]
    [proof] = [each for each in chain["inclusion"] if (each["sequence"], each["size"]) == (2, 5)]
    path, good = list(map(b64decode, proof["hashes"])), signatures[5]
    receipt = good.encode_inclusion_receipt(5, 1, path)
    one = cbor2.dumps([5, 1, path])
    for reason, content in (
        ("trailing bytes", receipt + b"\0"),
        ("no bytes", b""),
        ("the last byte is missing", receipt[:-1]),
        ("an array of indefinite length", receipt.replace(b"\xd2\x84", b"\xd2\x9f", 1) + b"\xff"),
        ("tag 17", b"\xd1" + receipt[1:]),
        ("no tag", receipt[1:]),
        ("a longer form of a length", receipt.replace(b"\xd2\x84", b"\xd2\x98\x04", 1)),
        ("an attached payload", _encode_receipt(good, {-1: [one]}, payload=b"\0" * 32)),
        ("ten proofs", _encode_receipt(good, {-1: [one] * 10})),
        ("no proof", _encode_receipt(good, {-1: []})),
        ("a proof of another kind", _encode_receipt(good, {-3: [one]})),
        ("both kinds of proofs", _encode_receipt(good, {-1: [one], -2: [one]})),
        ("a proof that is not CBOR", _encode_receipt(good, {-1: [b"\xff"]})),
        ("a proof with trailing bytes", _encode_receipt(good, {-1: [one + b"\0"]})),
        ("a path of 64 hashes", _encode_receipt(good, {-1: [cbor2.dumps([5, 1, [path[0]] * 64])]})),
        ("a shorter path", _encode_receipt(good, {-1: [cbor2.dumps([5, 1, path[:-1]])]})),
        ("a hash of 31 bytes", _encode_receipt(good, {-1: [cbor2.dumps([5, 1, [path[0][1:], *path[1:]]])]})),
        ("another place", _encode_receipt(good, {-1: [cbor2.dumps([5, 0, path])]})),
        ("a place outside of the tree", _encode_receipt(good, {-1: [cbor2.dumps([5, 5, path])]})),
        ("a negative place", _encode_receipt(good, {-1: [cbor2.dumps([5, -1, path])]})),
        ("a size that is not a number", _encode_receipt(good, {-1: [cbor2.dumps(["5", 1, path])]})),
        ("a size that is true", _encode_receipt(good, {-1: [cbor2.dumps([True, 0, []])]})),
        ("a huge size", _encode_receipt(good, {-1: [cbor2.dumps([2**70, 1, path])]})),
        ("the signature of another root", signatures[8].encode_inclusion_receipt(5, 1, path)),
        ("a smaller tree", good.encode_inclusion_receipt(2, 0, path[-1:])),
        ("another algorithm", _replace_protected_headers(good, {1: -8}).encode_inclusion_receipt(5, 1, path)),
        ("another tree algorithm", _replace_protected_headers(good, {395: 2}).encode_inclusion_receipt(5, 1, path)),
        ("a critical header", _replace_protected_headers(good, {2: [395]}).encode_inclusion_receipt(5, 1, path)),
        ("no key", _replace_protected_headers(good, {4: b"\0\0\0\0"}).encode_inclusion_receipt(5, 1, path)),
        (
            "another subject",
            _replace_protected_headers(good, {15: {1: ISSUER, 2: "x"}}).encode_inclusion_receipt(5, 1, path),
        ),
        (
            "a signature of 63 bytes",
            RootSignature(good.protected, good.signature[:-1]).encode_inclusion_receipt(5, 1, path),
        ),
        ("a signature of zeros", RootSignature(good.protected, b"\0" * 64).encode_inclusion_receipt(5, 1, path)),
    ):
        yield {"reason": reason, "hash": record, "receipt": content.hex()}
    yield {"reason": "another record", "hash": chain["records"][2]["Hash"], "receipt": receipt.hex()}


def _encode_receipt(valid_signature: RootSignature, proofs: dict[int, Any], payload: bytes | None = None) -> bytes:
    """Encode a receipt that has a valid signature, but possibly invalid proofs or an invalid payload.

    Args:
        valid_signature: valid signature of the root.
        proofs: proofs by number of their kind: -1 for inclusion, -2 for consistency (RFC 9942).
        payload: attached payload; None, as in a valid receipt, for a detached payload.
    """
    return cbor2.dumps(
        cbor2.CBORTag(18, [valid_signature.protected, {396: proofs}, payload, valid_signature.signature])
    )


def _replace_protected_headers(valid_signature: RootSignature, changes: dict[int, Any]) -> RootSignature:
    """Return a signature with some changed protected headers, by label; the signature no longer matches its headers."""
    header = {**cbor2.loads(valid_signature.protected), **changes}
    return RootSignature(cbor2.dumps(header), valid_signature.signature)


if __name__ == "__main__":
    TARGET.write_text(build_receipt_vectors_json(), encoding="utf-8")
