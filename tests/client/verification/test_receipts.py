"""Tests that the client verifies receipts and reads key sets."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cbor2
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from oi.verification.command import main
from oi.verification.key_sets import parse_verifier_keys
from oi.verification.notes import NoteError, VerifierKey, verify_and_parse_checkpoint
from oi.verification.receipts import ReceiptError, UnknownKeyError, parse_receipt, verify_record_by_receipt

VECTORS = Path(__file__).parents[2] / "vectors"
RECEIPTS = json.loads((VECTORS / "receipts.json").read_text(encoding="utf-8"))
CHAIN = json.loads((VECTORS / "proofs.json").read_text(encoding="utf-8"))
RECORDS = CHAIN["records"]
LINE, KEY_SET, JWKS = CHAIN["verifierKey"], bytes.fromhex(RECEIPTS["coseKeySet"]), RECEIPTS["jwks"]
KEYS = parse_verifier_keys(KEY_SET)
SECOND = next(each for each in RECEIPTS["inclusion"] if (each["sequence"], each["size"]) == (2, 5))
GOOD = bytes.fromhex(SECOND["receipt"])


def test_all_receipts_of_the_vectors_are_valid() -> None:
    """Each receipt in the test vectors is valid for its record, and names its record, size, issuer and chain."""
    for each in RECEIPTS["inclusion"]:
        receipt = parse_receipt(bytes.fromhex(each["receipt"]))
        verify_record_by_receipt(receipt, RECORDS[each["sequence"] - 1], KEYS)
        assert (receipt.record_id, receipt.size) == (f"{each['sequence']:012d}", each["size"])
        assert (receipt.issuer, receipt.subject) == (RECEIPTS["issuer"], CHAIN["checkpoints"][0]["origin"])


@pytest.mark.parametrize("case", RECEIPTS["invalid"], ids=lambda case: str(case["reason"]))
def test_invalid_receipts_of_the_vectors_are_rejected(case: dict[str, str]) -> None:
    """Each malformed or forged receipt in the test vectors is rejected with a reason."""
    [record] = [each for each in RECORDS if each["Hash"] == case["hash"]]
    with pytest.raises(ReceiptError):
        verify_record_by_receipt(parse_receipt(bytes.fromhex(case["receipt"])), record, KEYS)


def encode_receipt(proof: Any, *, copies: int = 1) -> bytes:
    """Return an encoded receipt that contains the given number of copies of a proof."""
    message = cbor2.loads(GOOD)
    protected, _, _, signature = message.value
    unprotected = {396: {-1: [cbor2.dumps(proof)] * copies}}
    return cbor2.dumps(cbor2.CBORTag(18, [protected, unprotected, None, signature]))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (encode_receipt([5, 1, [b"\0" * 32] * 10_000]), "more than 65536 bytes"),
        (encode_receipt([5, 1, [b"\0" * 32] * 64]), "at most 63 hashes"),
        (encode_receipt([5, 1, [b"\0" * 32] * 4]), "too many hashes"),
        (encode_receipt([5, 1, []]), "too few hashes"),
        (encode_receipt([5, 1, []], copies=10), "array of 1 items"),
        (encode_receipt([5, True, []]), "must have a tree size"),
        (encode_receipt([5.0, 1, []]), "must have a tree size"),
        (GOOD.replace(b"\xd2\x84", b"\xd2\x9f", 1) + b"\xff", "preferred form"),
        (GOOD + b"\0", "bytes follow"),
        (b"\xd1" + GOOD[1:], "tag 18"),
        (b"\x81" * 5_000, "not CBOR"),
        (b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "not CBOR"),
        (bytes.fromhex(RECEIPTS["growth"][0]["receipt"]), "an inclusion proof is required"),
    ],
)
def test_errors_about_malformed_receipts_state_the_rule(content: bytes, reason: str) -> None:
    """The error about a malformed receipt states the broken rule."""
    with pytest.raises(ReceiptError, match=reason):
        verify_record_by_receipt(parse_receipt(content), RECORDS[1], KEYS)


def test_a_receipt_is_rejected_for_a_changed_or_different_record() -> None:
    """A receipt is rejected for a different record, and for its record after a change of the content or the Hash."""
    receipt, record = parse_receipt(GOOD), RECORDS[1]
    for changed, reason in (
        ({**record, "EntityID": "other"}, "digest"),
        ({**record, "Hash": "0" * 64}, "digest"),
        ({"Hash": 5}, "digest"),
        (RECORDS[2], "not for 000000000003"),
    ):
        with pytest.raises(ReceiptError, match=reason):
            verify_record_by_receipt(receipt, changed, KEYS)


def test_an_error_about_an_unknown_key_contains_its_id() -> None:
    """The error about an unknown key contains the key's id.

    A key whose id does not match its coordinates is rejected.
    """
    with pytest.raises(UnknownKeyError, match=KEYS[0].key_id.hex()):
        verify_record_by_receipt(parse_receipt(GOOD), RECORDS[1], [])
    [key] = cbor2.loads(KEY_SET)
    other = ec.derive_private_key(7, ec.SECP256R1()).public_key().public_numbers()
    forged = {**key, -2: other.x.to_bytes(32), -3: other.y.to_bytes(32)}
    with pytest.raises(ValueError, match="does not match"):
        parse_verifier_keys(cbor2.dumps([forged]))


def test_the_three_key_formats_give_the_same_key() -> None:
    """A key as a text line, a COSE_KeySet and a JWK set is read as the same key."""
    for content in (LINE.encode(), f"{LINE}\n{LINE}\n".encode(), KEY_SET, json.dumps(JWKS).encode()):
        assert {key.spki for key in parse_verifier_keys(content)} == {VerifierKey.parse(LINE).spki}
    newest = CHAIN["checkpoints"][-1]
    note = newest["signedNote"].encode()
    chain = (CHAIN["workspace"], CHAIN["target"], CHAIN["scopeKey"])
    opened = verify_and_parse_checkpoint(note, KEYS, *chain)
    assert (opened.content.size, opened.unknown_key) == (newest["size"], "")


def change_jwk(**properties: Any) -> bytes:
    """Return the JWK set with changed properties of its key."""
    return json.dumps({"keys": [{**JWKS["keys"][0], **properties}]}).encode()


def change_cose(changes: dict[int, Any]) -> bytes:
    """Return the COSE_KeySet with changed properties of its key."""
    return cbor2.dumps([{**cbor2.loads(KEY_SET)[0], **changes}])


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"{}", b'{"keys": []}', b'{"keys": [1]}', b"\x80", b"\x81\x01", b"\xff", b"name+id+key"),
        *(KEY_SET + b"\0", KEY_SET[:-1], b"\x9f" + KEY_SET[1:] + b"\xff"),
        *(change_jwk(crv="P-384"), change_jwk(x="!"), change_jwk(kid="zz"), change_jwk(y=None), change_jwk(kty="OKP")),
        *(change_cose({-1: 2}), change_cose({1: 1}), change_cose({3: -8}), change_cose({-2: b"\0" * 31})),
        *(change_cose({-3: b"\0" * 32}), change_cose({2: b"\0" * 4}), change_cose({-3: True})),
    ],
)
def test_receipt_keys_with_wrong_properties_are_rejected(content: bytes) -> None:
    """A key with another curve, type or algorithm, or with a wrong id, is rejected."""
    with pytest.raises(ValueError, match=r"\w"):
        parse_verifier_keys(content)


def run_command(tmp_path: Path, receipt: bytes, record: object, key: bytes = KEY_SET, *options: str) -> int:
    """Run the command with files, and return its exit status."""
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    contents = {"receipt": receipt, "record": text, "key": key}
    arguments: list[str] = []
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        arguments += [f"--{name}", str(tmp_path / name)]
    return main([*arguments, *options])


def test_the_receipt_command_accepts_a_matching_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If a receipt matches its record, the exit status is 0, with keys in each format."""
    for record, key in ((RECORDS[1], KEY_SET), (RECORDS, LINE.encode()), ([RECORDS[1]], json.dumps(JWKS).encode())):
        assert run_command(tmp_path, GOOD, record, key) == 0
        assert "sound: 000000000002 of 5 records is in oi-provenance/plant-a/DomainEvents/" in capsys.readouterr().out
    named = ("--workspace", "plant-a", "--target", "DomainEvents", "--scope", CHAIN["scopeKey"])
    assert run_command(tmp_path, GOOD, RECORDS[1], KEY_SET, *named) == 0
    for part in (named[:2], named[2:4], named[4:], named[2:], (*named[:2], *named[4:])):
        assert run_command(tmp_path, GOOD, RECORDS[1], KEY_SET, *part) == 0


def test_the_receipt_command_states_what_does_not_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If record, receipt or chain do not match, the exit status is 1 and the output states the mismatch."""
    cases: Sequence[tuple[bytes, object, bytes, tuple[str, ...], str]] = (
        (GOOD, RECORDS[2], KEY_SET, (), "not for 000000000003"),
        (GOOD, {**RECORDS[1], "UserID": "x"}, KEY_SET, (), "digest"),
        (GOOD[:-1] + b"\0", RECORDS[1], KEY_SET, (), "signature"),
        (b"", RECORDS[1], KEY_SET, (), "not CBOR"),
        (GOOD, RECORDS[1], KEY_SET, ("--workspace", "plant-b"), "not to the workspace oi-provenance/plant-b"),
        (GOOD, RECORDS[1], KEY_SET, ("--workspace", "plant"), "not to the workspace oi-provenance/plant"),
        (GOOD, RECORDS[1], KEY_SET, ("--target", "AccessControl"), "not to the target AccessControl"),
        (GOOD, RECORDS[1], KEY_SET, ("--scope", "x"), "not to the scope x"),
        (GOOD, RECORDS[1], KEY_SET, ("--workspace", "plant-a", "--target", "DomainEvents", "--scope", "x"), "not to"),
    )
    for receipt, record, key, options, reason in cases:
        assert run_command(tmp_path, receipt, record, key, *options) == 1
        assert reason in capsys.readouterr().out


@pytest.mark.parametrize(
    ("subject", "options", "is_match"),
    [
        ("oi-provenance/p/DomainEvents/PlatformConfig", ["--target", "DomainEvents"], True),
        ("oi-provenance/p/DomainEvents/PlatformConfig", ["--target", "PlatformConfig"], False),
        ("oi-provenance/p/DomainEvents/PlatformConfig", ["--workspace", "p", "--scope", "PlatformConfig"], True),
        (
            "oi-provenance/DomainEvents/PlatformConfig",
            ["--workspace", "DomainEvents", "--target", "PlatformConfig"],
            True,
        ),
        ("oi-provenance/a%2Fb/DomainEvents/c%2Fd", ["--workspace", "a/b", "--scope", "c/d"], True),
        ("oi-provenance/p/DomainEvents", ["--scope", "DomainEvents"], False),
        ("oi-provenance/p/DomainEvents/s/x", ["--target", "DomainEvents"], False),
        ("oi-provenance/p/DomainEvents/", ["--target", "DomainEvents"], False),
        ("x/oi-provenance/p/DomainEvents/s", ["--target", "DomainEvents"], False),
    ],
)
def test_the_subject_is_compared_exactly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], subject: str, options: list[str], *, is_match: bool
) -> None:
    """Workspace, target and scope of a receipt are compared part by part, also if a scope is named like a target."""
    private = ec.generate_private_key(ec.SECP256R1())
    receipt, key = sign_receipt(subject, private)
    keys = cbor2.dumps([key], canonical=True)
    assert run_command(tmp_path, receipt, RECORDS[1], keys, *options) == (0 if is_match else 1)
    assert ("the receipt belongs to" in capsys.readouterr().out) == (not is_match)


def sign_receipt(subject: str, private: ec.EllipticCurvePrivateKey) -> tuple[bytes, dict[int, Any]]:
    """Return the receipt of the second record with another subject, and the COSE_Key that verifies it."""
    good, numbers = parse_receipt(GOOD), private.public_key().public_numbers()
    spki = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    coordinates = {-2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
    key = {1: 2, 2: VerifierKey("", spki).key_id, 3: -7, -1: 1, **coordinates}
    header = {**cbor2.loads(good.protected), 4: key[2], 15: {1: good.issuer, 2: subject}}
    protected, root = cbor2.dumps(header), good.compute_root(bytes.fromhex(RECORDS[1]["Hash"]))
    signed = private.sign(cbor2.dumps(["Signature1", protected, b"", root]), ec.ECDSA(hashes.SHA256()))
    signature = b"".join(part.to_bytes(32) for part in decode_dss_signature(signed))
    proofs = cbor2.loads(GOOD).value[1]
    return cbor2.dumps(cbor2.CBORTag(18, [protected, proofs, None, signature])), key


def test_a_key_of_another_workspace_verifies_no_receipt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key line with the name of another workspace verifies no receipt of this workspace."""
    spki = VerifierKey.parse(LINE).spki
    for name in ("oi-provenance/plant-b", "oi-provenance", "oi-provenance/plant-a/DomainEvents"):
        assert run_command(tmp_path, GOOD, RECORDS[1], str(VerifierKey(name, spki)).encode()) == 1
        assert f"belongs to {name}, not to oi-provenance/plant-a/" in capsys.readouterr().out


def test_a_key_of_another_workspace_verifies_no_checkpoint() -> None:
    """A key verifies a checkpoint only if its name, and that on the signature line, are those of the workspace."""
    note, chain = CHAIN["checkpoints"][-1]["signedNote"], (CHAIN["workspace"], CHAIN["target"], CHAIN["scopeKey"])
    key, line = VerifierKey.parse(LINE), f"\u2014 {VerifierKey.parse(LINE).name} "
    foreign = VerifierKey("oi-provenance/plant-b", key.spki)
    renamed = note.replace(line, f"\u2014 {foreign.name} ")
    for signed, keys in ((note, [foreign]), (renamed, [foreign]), (renamed, [foreign, key]), (renamed, KEYS)):
        with pytest.raises(NoteError, match="not signed by a trusted key of oi-provenance/plant-a"):
            verify_and_parse_checkpoint(signed.encode(), keys, *chain)
    for signed, keys in ((note, [foreign, key]), (note + renamed.splitlines()[-1] + "\n", [key])):
        assert verify_and_parse_checkpoint(signed.encode(), keys, *chain).signers == [key]


def test_the_receipt_command_cannot_decide_without_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If an unknown key signed a receipt, such as a retired one, the exit status is 2, but 1 if something is wrong."""
    numbers = ec.derive_private_key(7, ec.SECP256R1()).public_key().public_numbers()
    spki = VerifierKey.parse(LINE).spki[:-64] + numbers.x.to_bytes(32) + numbers.y.to_bytes(32)
    other = str(VerifierKey("other", spki)).encode()
    assert run_command(tmp_path, GOOD, RECORDS[1], other) == 2
    printed = capsys.readouterr()
    assert f"the receipt states the unknown key {KEYS[0].key_id.hex()}; pass the set of all keys" in printed.err
    assert printed.out == ""
    assert run_command(tmp_path, GOOD, {**RECORDS[1], "UserID": "x"}, other) == 1
    assert run_command(tmp_path, GOOD, RECORDS[1], other, "--workspace", "plant-b") == 1
    assert "not to the workspace oi-provenance/plant-b" in capsys.readouterr().out


def test_the_receipt_command_requires_all_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If a file or option is missing, unreadable or contradictory, the exit status is 2."""
    for record, key in (([], KEY_SET), ("text", KEY_SET), (RECORDS[1], b"\x80")):
        assert run_command(tmp_path, GOOD, record, key) == 2
    options = ["--receipt", str(tmp_path / "receipt"), "--record", str(tmp_path / "record")]
    whole = [*options, "--key", LINE]
    for arguments in (options[:2], options[2:], options, [*whole, "export.json"], [*whole, "--checkpoint", "note"], []):
        with pytest.raises(SystemExit) as raised:
            main(arguments)
        assert raised.value.code == 2
    assert main([*options[:1], str(tmp_path / "missing"), *whole[2:]]) == 2
    assert "required" in capsys.readouterr().err


def test_the_receipt_command_rejects_a_second_record_of_the_same_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A receipt proves no record if the file contains another one with its RecordID."""
    forged = {**RECORDS[1], "EntityID": "FORGED"}
    for records in ([RECORDS[1], forged], [forged, RECORDS[1]]):
        assert run_command(tmp_path, GOOD, records, KEY_SET) == 1
        shown = capsys.readouterr().out
        assert shown == "broken at 000000000002: the file contains 2 records with this RecordID\n"


def test_the_error_about_an_invalid_record_names_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the file of the record is not JSON, such as two objects without an array, the error names the file."""
    record = json.dumps(RECORDS[1]).encode()
    for content in (record + b"," + record, record + b"]", b""):
        assert run_command(tmp_path, GOOD, content, KEY_SET) == 2
        assert capsys.readouterr().err.startswith(f"cannot tell: {tmp_path / 'record'}: the file is not JSON: ")


def test_jwk_coordinates_must_be_base64url_without_padding() -> None:
    """JWK coordinates are read as base64url without padding; the standard base64 alphabet is rejected."""
    x = base64.urlsafe_b64decode(JWKS["keys"][0]["x"] + "=")
    assert KEYS[0].parse_public_key().public_numbers().x == int.from_bytes(x)
    with pytest.raises(ValueError, match="coordinate"):
        parse_verifier_keys(change_jwk(x="+" * 43))
