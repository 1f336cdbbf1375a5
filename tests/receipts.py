"""Verification of receipts with scitt-cose, an implementation independent of this project."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import cbor2
import scitt_cose
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def convert_key(numbers: Mapping[Any, Any]) -> bytes:
    """Convert the numbers of a COSE_Key or of a JWK to a public key in PEM."""
    x, y = (
        (numbers[-2], numbers[-3])
        if -2 in numbers
        else (base64.urlsafe_b64decode(numbers[name] + "=") for name in ("x", "y"))
    )
    public = ec.EllipticCurvePublicNumbers(int.from_bytes(x), int.from_bytes(y), ec.SECP256R1()).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def select_key(receipt: bytes, key_set: bytes) -> bytes:
    """Return, in PEM, the key of a COSE_KeySet with which a receipt was signed."""
    wanted = cbor2.loads(cbor2.loads(receipt).value[0])[4]
    [key] = [each for each in cbor2.loads(key_set) if each[2] == wanted]
    assert (key[1], key[3], key[-1]) == (2, -7, 1)
    return convert_key(key)


def verify_inclusion(receipt: bytes, record_hash: str, key_set: bytes) -> Any:
    """Verify an inclusion receipt of a record, and return the result of scitt-cose."""
    pem = select_key(receipt, key_set)
    return scitt_cose.verify_receipt(receipt, leaf_entry_hex=record_hash, log_public_key_pem=pem)


def verify_growth(receipt: bytes, hashes: Sequence[str], key_set: bytes) -> tuple[int, int]:
    """Verify a consistency receipt with the roots that are computed from all record hashes; return both chain sizes."""
    [proof] = cbor2.loads(receipt).value[1][396][-2]
    old, size, path = cbor2.loads(proof)
    older, newer = (scitt_cose.merkle_root(list(hashes[:each])) for each in (old, size))
    pem = select_key(receipt, key_set)
    scitt_cose.verify_sign1(receipt, public_key_pem=pem, detached_payload=bytes.fromhex(newer))
    assert scitt_cose.verify_consistency(older, newer, old, size, [each.hex() for each in path])
    return old, size
