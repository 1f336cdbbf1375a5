"""Tests of the COSE encoding of signatures of Merkle tree roots, of receipts, and of keys."""

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.provenance.cose import RootSignature, build_protected_header, build_signed_bytes, encode_key_set
from shared.provenance.notes import NoteError, VerifierKey

PRIVATE = ec.derive_private_key(5, ec.SECP256R1())
KEY = VerifierKey("name", PRIVATE.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
HEADER = build_protected_header(KEY.key_id, "https://plant.example", "origin")
SIGNATURE = RootSignature(HEADER, b"\1" * 64)


def test_the_cose_encoding_is_deterministic() -> None:
    """Map labels are in the order of RFC 8949 section 4.2; a parsed signature is encoded to the same bytes."""
    assert HEADER.hex().startswith("a40126" + "0444" + KEY.key_id.hex() + "0fa2")
    assert HEADER.endswith(bytes.fromhex("19018b01"))
    assert RootSignature.parse(SIGNATURE.encode()) == SIGNATURE
    assert SIGNATURE.read_key_id() == KEY.key_id
    assert build_signed_bytes(b"\xa0", b"root").hex() == "846a5369676e61747572653141a04044726f6f74"


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\0", SIGNATURE.encode() + b"\0", SIGNATURE.encode()[:-1], b"\xd1" + SIGNATURE.encode()[1:]),
        *(SIGNATURE.encode_inclusion_receipt(1, 0, []), cbor2.dumps(cbor2.CBORTag(18, [HEADER, {}, b"", b""]))),
        *(cbor2.dumps(cbor2.CBORTag(18, 5)), cbor2.dumps(cbor2.CBORTag(18, [1, 2, 3]))),
        *(cbor2.dumps(cbor2.CBORTag(18, [HEADER, {}, None, each])) for each in (5, "1" * 64, b"\1" * 63, b"")),
        cbor2.dumps(cbor2.CBORTag(18, [5, {}, None, b"\1" * 64])),
    ],
)
def test_content_that_is_not_a_root_signature_is_rejected(content: bytes) -> None:
    """Content with another type or length of a part, another CBOR tag, or an attached payload or proof is rejected."""
    with pytest.raises(NoteError):
        RootSignature.parse(content)


def test_a_signature_without_key_is_rejected() -> None:
    """A root signature without a key id in its header, or that consists of zeros, is rejected."""
    for header in (b"", b"\xa0", cbor2.dumps({4: 5}), cbor2.dumps([])):
        with pytest.raises(NoteError, match="has no key id"):
            RootSignature(header, b"").read_key_id()
    with pytest.raises(NoteError, match="is not valid"):
        RootSignature(HEADER, b"\0" * 64).verify(b"\0" * 32, KEY)


def test_coordinates_in_a_cose_key_set_have_fixed_lengths() -> None:
    """Coordinates of public keys have 32 bytes, if necessary with leading zeros."""
    for number in range(1, 400, 57):
        public = ec.derive_private_key(number, ec.SECP256R1()).public_key()
        key = VerifierKey("", public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
        [found] = cbor2.loads(encode_key_set([key]))
        assert (found[1], found[2], found[3], found[-1]) == (2, key.key_id, -7, 1)
        assert (len(found[-2]), len(found[-3])) == (32, 32)
