"""Tests of audit bundles over HTTP, and of their verification without the service."""

import hashlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cbor2
import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from oi.verification.command import main
from oi.verification.notes import VerifierKey, build_key_name, format_signature_line

from tests.receipts import verify_inclusion
from tests.service.local_service import ROOT, Service, check_failing_fields, check_problem, wait_until
from tests.service.test_amendments import approve_amendment, create_amendment

BUNDLES, EVENTS = "/oi-api/provenance/bundles", "/oi-api/provenance/events"
SCOPE = "bundle/ü 1"
CHAINS: list[dict[str, str]] = [
    {"target": "DomainEvents", "scopeKey": SCOPE},
    {"target": "DomainAmendments", "scopeKey": SCOPE},
    {"target": "PlatformConfig"},
]
EMPTY_CHAIN = {"target": "DomainEvents", "scopeKey": "never written to"}


def build_bundle(client: httpx.Client, **body: Any) -> dict[str, Any]:
    """Start an audit bundle, wait until it has ended, and return its state."""
    started = client.post(BUNDLES, json=body)
    assert started.status_code == 202, started.text
    assert started.headers["location"] == started.json()["statusUrl"]
    ended = wait_until(
        lambda: client.get(started.headers["location"]).json(), lambda job: job["status"] not in ("pending", "running")
    )
    assert ended["status"] == "completed", ended
    return dict(ended)


def download_bundle(client: httpx.Client, **body: Any) -> bytes:
    """Build an audit bundle and return its zip file."""
    return download_file(build_bundle(client, **body))


def download_file(bundle: dict[str, Any]) -> bytes:
    """Return the zip file of a completed bundle."""
    [file] = bundle["files"]
    content = httpx.get(file["url"], trust_env=False).content
    assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])
    return content


@pytest.fixture(scope="module")
def service_with_records(own_module_service: Service) -> Service:
    """Return a service with events and amendments of a scope."""
    editor, admin = own_module_service.create_client("editor@t"), own_module_service.create_client("admin@t")
    for number in range(7):
        event = {"ScopeKey": SCOPE, "ActionType": "A", "EntityType": "T", "EntityID": f"E-{number % 2}"}
        assert editor.post(EVENTS, json=event).status_code == 201
    first = create_amendment(editor, SCOPE).json()["RecordID"]
    create_amendment(editor, SCOPE, EntityID="<b>")
    assert approve_amendment(admin, SCOPE, first).status_code == 200
    return own_module_service


@pytest.fixture(scope="module")
def complete_bundle(service_with_records: Service) -> bytes:
    """Return a bundle of complete chains."""
    return download_bundle(service_with_records.create_client("editor@t"), scopes=CHAINS)


@pytest.fixture(scope="module")
def filtered_bundle(service_with_records: Service) -> bytes:
    """Return a bundle that contains only the records of one entity."""
    return download_bundle(service_with_records.create_client("editor@t"), scopes=CHAINS[:1], entityId="E-1")


def test_a_retry_returns_the_same_bundle(service_with_records: Service) -> None:
    """A repeated request with the same Idempotency-Key gets the same bundle.

    The same key with another body is rejected.
    """
    editor, headers = service_with_records.create_client("editor@t"), {"Idempotency-Key": "bundle-1"}
    first = editor.post(BUNDLES, json={"scopes": CHAINS[:1]}, headers=headers)
    again = editor.post(BUNDLES, json={"scopes": CHAINS[:1]}, headers={**headers, "Prefer": "wait=30"})
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.headers["location"] == first.headers["location"]
    assert again.json()["files"][0]["url"]
    ids = [job["bundleId"] for job in editor.get(BUNDLES).json()["bundles"]]
    assert ids.count(first.json()["bundleId"]) == 1
    other = editor.post(BUNDLES, json={"scopes": CHAINS[1:2]}, headers=headers)
    check_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    assert editor.post(BUNDLES, json={"scopes": CHAINS[:1]}).json()["bundleId"] != first.json()["bundleId"]


def read_bundle_files(content: bytes) -> dict[str, bytes]:
    """Return the files of a bundle."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def load_verifier_key(service_with_records: Service) -> str:
    """Return the verifier key that the service publishes."""
    return service_with_records.create_anonymous_client().get("/.well-known/oi-checkpoint-key").text.strip()


def verify_bundle(tmp_path: Path, content: bytes, *arguments: str) -> int:
    """Run the offline verifier on a bundle and return its exit status."""
    path = tmp_path / "bundle.zip"
    path.write_bytes(content)
    return main([str(path), *arguments])


def test_a_bundle_has_all_files_of_its_chains(service_with_records: Service) -> None:
    """The manifest lists each chain with its files, counts and verdict; the records equal those of an export."""
    files = read_bundle_files(
        download_bundle(service_with_records.create_client("editor@t"), scopes=[*CHAINS, EMPTY_CHAIN])
    )
    manifest = json.loads(files["manifest.json"])
    assert set(manifest) == {"workspace", "createdAt", "createdBy", "filters", "chains"}
    assert (manifest["workspace"], manifest["createdBy"]) == ("plant-t", "editor@t")
    admin = service_with_records.create_client("admin@t")
    events, amendments, config, empty = manifest["chains"]
    assert {**events, "verdict": None} == {
        "target": "DomainEvents",
        "scopeKey": SCOPE,
        "file": "chains/1.json",
        "records": 7,
        "complete": True,
        "checkpoint": "checkpoints/1.txt",
        "proof": "proofs/1.json",
        "verdict": None,
    }
    reply = admin.post(f"{EVENTS}/verify", params={"target": "DomainEvents"}, json={"ScopeKey": SCOPE}).json()
    assert events["verdict"] == reply
    exported = admin.get(f"{EVENTS}/export", params={"target": "DomainEvents", "scopeKey": SCOPE})
    assert json.loads(files["chains/1.json"]) == exported.json()
    assert amendments["records"] == 3
    assert (config["scopeKey"], config["complete"]) == (None, True)
    assert (empty["records"], empty["checkpoint"], empty["proof"]) == (0, None, None)
    assert (empty["verdict"]["Empty"], files[empty["file"]]) == (True, b"[]")
    assert files["verifier-key.txt"].decode().strip() == load_verifier_key(service_with_records)
    report = files["report.html"].decode()
    assert "editor@t" in report
    assert "approved" in report
    assert "<b>" not in report
    assert "oi verify-file" in files["README.txt"].decode()


def test_a_bundle_is_verified_offline(
    service_with_records: Service, complete_bundle: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The offline verifier accepts a bundle with the service's key.

    Without a key, it prints the enclosed key's fingerprint, and that the bundle only agrees with itself.
    """
    assert (
        verify_bundle(
            tmp_path, complete_bundle, "--key", load_verifier_key(service_with_records), "--workspace", "plant-t"
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "sound: 7 records, checkpoint of 7 agrees" in printed
    assert "report.html is not signed: it is not evidence" in printed
    assert "not independently confirmed" not in printed
    assert verify_bundle(tmp_path, complete_bundle) == 0
    unconfirmed = capsys.readouterr().out
    assert "key not independently confirmed" in unconfirmed
    assert "sound" not in unconfirmed
    assert "pass the verifier key from another source with --key" in unconfirmed
    assert verify_bundle(tmp_path, complete_bundle, "--workspace", "plant-x") == 1


def test_a_bundle_is_verified_by_the_command(
    service_with_records: Service, complete_bundle: bytes, tmp_path: Path
) -> None:
    """The verifier's command accepts a bundle and rejects options that apply only to single chains."""
    path = tmp_path / "bundle.zip"
    path.write_bytes(complete_bundle)
    key = load_verifier_key(service_with_records)
    command = [sys.executable, "-m", "oi.verification", str(path), "--key", key]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client" / "src")}
    assert subprocess.run(command, env=environment, check=False, capture_output=True).returncode == 0
    with pytest.raises(SystemExit):
        main([str(path), "--target", "DomainEvents"])


def rewrite_bundle(content: bytes, change: Callable[[dict[str, bytes]], None], *, digests: bool = True) -> bytes:
    """Return a bundle with changed files.

    With ``digests``, its README file contains the new digests of these files.
    """
    files = read_bundle_files(content)
    before = {name: hashlib.sha256(each).hexdigest() for name, each in files.items()}
    change(files)
    if digests:
        for name, each in files.items():
            old, new = before.get(name, "-"), hashlib.sha256(each).hexdigest()
            files["README.txt"] = files["README.txt"].replace(old.encode(), new.encode())
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name, each in files.items():
            file.writestr(name, each)
    return target.getvalue()


def flip_bit(content: bytes, position: int) -> bytes:
    """Return bytes with one flipped bit."""
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


def replace_file(name: str, content: bytes, files: dict[str, bytes]) -> None:
    """Replace the content of one file of a bundle."""
    files[name] = content


def test_the_verifier_finds_one_flipped_byte_in_any_file(
    complete_bundle: bytes, filtered_bundle: bytes, tmp_path: Path
) -> None:
    """The verifier finds one flipped byte in any file, because the digest of the file does not match."""
    for content in (complete_bundle, filtered_bundle):
        for name, each in read_bundle_files(content).items():
            if name == "README.txt":
                continue
            for place in {0, len(each) // 2, len(each) - 1}:
                changed = rewrite_bundle(content, partial(replace_file, name, flip_bit(each, place)), digests=False)
                assert verify_bundle(tmp_path, changed) == 1, name


def test_a_flipped_byte_is_found_even_if_all_digests_are_corrected(
    complete_bundle: bytes, filtered_bundle: bytes, tmp_path: Path
) -> None:
    """The verifier finds one flipped byte in a record, checkpoint, proof or key, even if all digests are corrected."""
    for content in (complete_bundle, filtered_bundle):
        for name, each in read_bundle_files(content).items():
            if name.partition("/")[0] not in {"chains", "checkpoints", "proofs", "verifier-key.txt"}:
                continue
            for place in range(0, len(each.rstrip()), max(1, len(each) // 9)):
                changed = rewrite_bundle(content, partial(replace_file, name, flip_bit(each, place)))
                assert verify_bundle(tmp_path, changed) == 1, (name, place)


def test_a_flipped_byte_of_the_zip_file_cannot_change_the_content(
    service_with_records: Service, complete_bundle: bytes, tmp_path: Path
) -> None:
    """If one byte of the zip file is flipped, the verifier rejects the bundle or reads the same content as before."""
    places = range(0, len(complete_bundle), max(1, len(complete_bundle) // 120))
    key = load_verifier_key(service_with_records)
    results = [verify_bundle(tmp_path, flip_bit(complete_bundle, place), "--key", key) for place in places]
    assert set(results) <= {0, 1}
    assert results.count(1) > len(results) * 0.8


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "workspace": lambda manifest: manifest.update(workspace="plant-x"),
    "another scope": lambda manifest: manifest["chains"][0].update(scopeKey="other"),
    "fewer records": lambda manifest: manifest["chains"][0].update(records=6),
    "no checkpoint": lambda manifest: manifest["chains"][0].update(checkpoint=None),
    "no proof": lambda manifest: manifest["chains"][0].update(proof=None),
    "not complete": lambda manifest: manifest["chains"][0].update(complete=False),
    "broken": lambda manifest: manifest["chains"][0]["verdict"].update(ChainValid=False, BrokenAt="000000000001"),
    "empty": lambda manifest: manifest["chains"][0]["verdict"].update(Empty=True),
    "target is no text": lambda manifest: manifest["chains"][0].update(target=[]),
    "chain removed": lambda manifest: manifest["chains"].pop(),
    "unknown member": lambda manifest: manifest.update(extra=1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_manifest_is_rejected(complete_bundle: bytes, tmp_path: Path, name: str) -> None:
    """The verifier rejects a bundle whose manifest does not agree with its files."""

    def change_manifest(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["manifest.json"])
        CHANGES[name](manifest)
        files["manifest.json"] = json.dumps(manifest).encode()

    assert verify_bundle(tmp_path, rewrite_bundle(complete_bundle, change_manifest)) == 1


def test_the_verifier_finds_a_removed_record(complete_bundle: bytes, filtered_bundle: bytes, tmp_path: Path) -> None:
    """The verifier finds that the last record of a complete chain was removed, even if the manifest was adjusted."""

    def drop_last_record(files: dict[str, bytes]) -> None:
        files["chains/1.json"] = json.dumps(json.loads(files["chains/1.json"])[:-1]).encode()
        manifest = json.loads(files["manifest.json"])
        manifest["chains"][0]["records"] -= 1
        files["manifest.json"] = json.dumps(manifest).encode()

    assert verify_bundle(tmp_path, rewrite_bundle(complete_bundle, drop_last_record)) == 1
    assert verify_bundle(tmp_path, rewrite_bundle(filtered_bundle, drop_last_record)) == 1


def test_an_empty_chain_is_not_verified(
    service_with_records: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing signed proves that a chain is empty, so the verifier cannot decide about a bundle that says so."""
    key = load_verifier_key(service_with_records)
    content = download_bundle(service_with_records.create_client("editor@t"), scopes=[CHAINS[0], EMPTY_CHAIN])
    for arguments in ((), ("--key", key)):
        assert verify_bundle(tmp_path, content, *arguments) == 2
    assert "nothing proves that it has no records" in capsys.readouterr().err


def empty_chain(entry: dict[str, Any], files: dict[str, bytes]) -> None:
    """Remove all records of the first chain, with its checkpoint and its proof."""
    files["chains/1.json"] = b"[]"
    for name in ("checkpoint", "proof"):
        del files[entry[name]]
    entry.update(records=0, checkpoint=None, proof=None)


def test_a_chain_that_was_emptied_is_not_verified(
    service_with_records: Service, complete_bundle: bytes, filtered_bundle: bytes, tmp_path: Path
) -> None:
    """If all records of a chain were removed from a bundle, with checkpoint and proof, it is not reported as valid."""

    def forge(content: bytes, **changes: Any) -> bytes:
        files = read_bundle_files(content)
        manifest = json.loads(files["manifest.json"])
        entry = manifest["chains"][0]
        empty_chain(entry, files)
        entry.update(changes)
        if entry["verdict"] is not None:
            entry["verdict"].update(Empty=True, Reason="nothing to check")
        removed: dict[str, bytes | None] = dict.fromkeys(read_bundle_files(content).keys() - files.keys())
        return change_files(content, {**files, "manifest.json": json.dumps(manifest).encode(), **removed})

    for arguments in ((), ("--key", load_verifier_key(service_with_records))):
        assert verify_bundle(tmp_path, forge(complete_bundle), *arguments) == 2
        assert verify_bundle(tmp_path, forge(filtered_bundle), *arguments) == 2
        assert verify_bundle(tmp_path, forge(complete_bundle, complete=False, verdict=None), *arguments) == 1


def test_a_chain_without_matching_records_is_not_verified(
    service_with_records: Service, complete_bundle: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A filtered chain without records is not reported as valid, because its filters and their result are unsigned."""
    key = load_verifier_key(service_with_records)

    def claim_that_no_record_matches(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["manifest.json"])
        manifest["filters"]["entityId"] = "x"
        for entry in manifest["chains"]:
            entry.update(records=0, complete=False, verdict=None)
            files[entry["file"]] = files[entry["proof"]] = b"[]"
        files["manifest.json"] = json.dumps(manifest).encode()

    forged = rewrite_bundle(complete_bundle, claim_that_no_record_matches)
    editor = service_with_records.create_client("editor@t")
    genuine = download_bundle(editor, scopes=CHAINS, entityId="E-9")
    for content in (forged, genuine):
        for arguments in ((), ("--key", key)):
            assert verify_bundle(tmp_path, content, *arguments) == 2
            printed = capsys.readouterr()
            assert printed.err.count("the bundle contains no record of this chain, so nothing was verified") == 3
            assert "covers" not in printed.out
    partly = download_bundle(editor, scopes=CHAINS, entityId="E-1")
    assert verify_bundle(tmp_path, partly, "--key", key) == 2
    printed = capsys.readouterr()
    assert "covers 3 filtered records" in printed.out
    assert printed.err.count("nothing was verified") == 2


def test_a_bundle_without_chains_is_rejected(complete_bundle: bytes, tmp_path: Path) -> None:
    """A bundle from which all chains were removed is not reported as valid: every bundle has at least one chain."""
    files = read_bundle_files(complete_bundle)
    manifest = {**json.loads(files["manifest.json"]), "chains": []}
    removed: dict[str, bytes | None] = {name: None for name in files if "/" in name}
    emptied = change_files(complete_bundle, {**removed, "manifest.json": json.dumps(manifest).encode()})
    assert verify_bundle(tmp_path, emptied) == 1


def create_key(workspace: str = "plant-t") -> tuple[ec.EllipticCurvePrivateKey, VerifierKey]:
    """Return a new private key, and its public key with the name of the key of a workspace."""
    private = ec.generate_private_key(ec.SECP256R1())
    spki = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return private, VerifierKey(build_key_name(workspace), spki)


def sign_checkpoint(note: bytes, private: ec.EllipticCurvePrivateKey, key: VerifierKey) -> bytes:
    """Return a checkpoint whose signatures are replaced by that of another key."""
    text = note.rpartition(b"\n\n")[0] + b"\n"
    return text + b"\n" + format_signature_line(key, private.sign(text, ec.ECDSA(hashes.SHA256())))


def test_a_checkpoint_of_an_unknown_key_leaves_a_chain_undecided(
    service_with_records: Service,
    complete_bundle: bytes,
    filtered_bundle: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If only an unknown key of the workspace signed a checkpoint, such as a retired one, the exit status is 2."""
    known, (private, unknown) = load_verifier_key(service_with_records), create_key()
    for content in (complete_bundle, filtered_bundle):
        assert verify_bundle(tmp_path, content, "--key", str(unknown)) == 2
        assert (
            f"states the unknown key {load_verifier_key(service_with_records).split('+')[1]}" in capsys.readouterr().err
        )
        note = sign_checkpoint(read_bundle_files(content)["checkpoints/1.txt"], private, unknown)
        resigned = change_files(content, {"checkpoints/1.txt": note})
        assert verify_bundle(tmp_path, resigned, "--key", known) == 2
        printed = capsys.readouterr()
        assert f"states the unknown key {unknown.key_id.hex()}; pass the set of all keys with --key" in printed.err
        assert "chains/1.json" not in printed.out
        (tmp_path / "keys").write_text(f"{known}\n{unknown}\n")
        assert verify_bundle(tmp_path, resigned, "--key", str(tmp_path / "keys")) == 0


def test_a_forged_checkpoint_is_reported(
    service_with_records: Service,
    complete_bundle: bytes,
    filtered_bundle: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A checkpoint is invalid if a known key did not sign it but its id is stated, or no key of the workspace did.

    Without ``--key``, the keys in the bundle must have signed it.
    """
    known = load_verifier_key(service_with_records)
    key, (private, unknown), (_, foreign) = VerifierKey.parse(known), create_key(), create_key("plant-x")
    for content in (complete_bundle, filtered_bundle):
        note = read_bundle_files(content)["checkpoints/1.txt"]
        by_unknown = sign_checkpoint(note, private, unknown)
        text = note.rpartition(b"\n\n")[0] + b"\n\n"
        for forged in (
            sign_checkpoint(note, private, key),
            by_unknown + format_signature_line(key, private.sign(text[:-1], ec.ECDSA(hashes.SHA256()))),
            sign_checkpoint(note, private, replace(key, name=foreign.name)),
            by_unknown + format_signature_line(replace(key, name=foreign.name), b"0"),
            sign_checkpoint(note, private, foreign),
            text + format_signature_line(unknown, b""),
            text,
            by_unknown.replace(b"/DomainEvents/", b"/DomainAmendments/"),
            by_unknown.replace(b"\n7\n", b"\n6\n"),
            by_unknown.replace(b"\n7\n", b"\n" + b"7" * 5000 + b"\n"),
            by_unknown.replace(b"\n7\n", b"\n" + b"7" * 13 + b"\n"),
        ):
            changed = change_files(content, {"checkpoints/1.txt": forged})
            assert verify_bundle(tmp_path, changed, "--key", known) == 1, forged
        resigned = change_files(content, {"checkpoints/1.txt": by_unknown})
        capsys.readouterr()
        assert verify_bundle(tmp_path, resigned) == 1
        assert f"does not contain the key {unknown.key_id.hex()} that signed" in capsys.readouterr().out


def test_a_checkpoint_of_an_unknown_key_hides_no_fault(
    service_with_records: Service,
    complete_bundle: bytes,
    filtered_bundle: bytes,
    bundle_with_receipts: bytes,
    tmp_path: Path,
) -> None:
    """If an unknown key signed a checkpoint, records, proofs and receipts are verified all the same."""
    known, (private, unknown) = load_verifier_key(service_with_records), create_key()

    def drop_last_record(entry: dict[str, Any], files: dict[str, bytes]) -> None:
        files[entry["file"]] = json.dumps(json.loads(files[entry["file"]])[:-1]).encode()
        entry["records"] -= 1

    def change_record(entry: dict[str, Any], files: dict[str, bytes]) -> None:
        files[entry["file"]] = files[entry["file"]].replace(b'"EntityID":"E-1"', b'"EntityID":"E-2"', 1)

    def change_proof(entry: dict[str, Any], files: dict[str, bytes]) -> None:
        files[entry["proof"]] = files[entry["proof"]].replace(b'"leafIndex":', b'"leafIndex":1')

    def drop_proof(entry: dict[str, Any], files: dict[str, bytes]) -> None:
        if entry["complete"]:
            entry["verdict"].update(ChainValid=False, BrokenAt="000000000001", Reason="reason")
        del files[entry["proof"]]
        entry["proof"] = None

    for content in (complete_bundle, filtered_bundle):
        for forge in (drop_last_record, change_record, change_proof, drop_proof):
            files = read_bundle_files(content)
            manifest = json.loads(files["manifest.json"])
            files["checkpoints/1.txt"] = sign_checkpoint(files["checkpoints/1.txt"], private, unknown)
            forge(manifest["chains"][0], files)
            files["manifest.json"] = json.dumps(manifest).encode()
            removed: dict[str, bytes | None] = dict.fromkeys(read_bundle_files(content).keys() - files.keys())
            forged = change_files(content, {**files, **removed})
            assert verify_bundle(tmp_path, forged, "--key", known) == 1, forge
    receipts = read_bundle_files(bundle_with_receipts)
    swapped = {"receipts/1/000000000007.cbor": receipts["receipts/1/000000000006.cbor"]}
    assert verify_bundle(tmp_path, bundle_with_receipts, "--key", str(unknown)) == 2
    assert verify_bundle(tmp_path, change_files(bundle_with_receipts, {**swapped}), "--key", str(unknown)) == 1


def test_no_chain_hides_the_fault_of_another(
    service_with_records: Service, complete_bundle: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verifier reports the fault of each chain, also if another chain has a name that is not valid Unicode."""

    def damage_two_chains(files: dict[str, bytes]) -> None:
        files["manifest.json"] = files["manifest.json"].replace(json.dumps(SCOPE).encode(), b'"\\ud800"', 1)
        files["chains/2.json"] = files["chains/2.json"].replace(b"<b>", b"<c>")

    manifest = json.loads(read_bundle_files(complete_bundle)["manifest.json"])
    ascii_manifest = change_files(complete_bundle, {"manifest.json": json.dumps(manifest).encode()})
    forged = rewrite_bundle(ascii_manifest, damage_two_chains)
    assert verify_bundle(tmp_path, forged, "--key", load_verifier_key(service_with_records)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines if ": broken at" in line] == ["chains/1.json", "chains/2.json"]
    assert any(line.startswith("chains/3.json") and "sound" in line for line in lines)


def test_receipts_that_cannot_be_read_hide_no_fault(
    service_with_records: Service,
    bundle_with_receipts: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the library for receipts, the verifier reports broken chains, and cannot decide on the others."""
    monkeypatch.setitem(sys.modules, "oi.verification.receipts", None)
    key = load_verifier_key(service_with_records)
    assert verify_bundle(tmp_path, bundle_with_receipts, "--key", key) == 2
    assert capsys.readouterr().err.count("cannot tell: chains/") == 3
    changed = read_bundle_files(bundle_with_receipts)["chains/2.json"].replace(b"<b>", b"<c>")
    forged = change_files(bundle_with_receipts, {"chains/2.json": changed})
    assert verify_bundle(tmp_path, forged, "--key", key) == 1
    assert "chains/2.json" in capsys.readouterr().out


def test_an_unsupported_enclosed_key_is_reported(complete_bundle: bytes, tmp_path: Path) -> None:
    """A bundle whose enclosed key is on an unknown curve is damaged, so the exit status is 1."""
    _, key = create_key()
    unknown_curve = key.spki.replace(bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030106"))
    changed = f"{replace(key, spki=unknown_curve)}\n".encode()
    assert verify_bundle(tmp_path, change_files(complete_bundle, {"verifier-key.txt": changed})) == 1


def test_a_complete_bundle_has_no_incomplete_chain(complete_bundle: bytes, tmp_path: Path) -> None:
    """A chain can be incomplete only if the bundle has filters, so that a shortened chain is not taken for filtered."""

    def shorten_chain(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["manifest.json"])
        manifest["chains"][0].update(records=0, complete=False, verdict=None)
        files["chains/1.json"] = files["proofs/1.json"] = b"[]"
        files["manifest.json"] = json.dumps(manifest).encode()

    assert verify_bundle(tmp_path, rewrite_bundle(complete_bundle, shorten_chain)) == 1


def test_a_filtered_chain_has_a_proof_for_each_record(
    service_with_records: Service, filtered_bundle: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle marks a filtered chain as incomplete.

    The chain has an inclusion proof for each record, but no verdict.
    """
    files = read_bundle_files(filtered_bundle)
    [entry] = json.loads(files["manifest.json"])["chains"]
    assert (entry["records"], entry["complete"], entry["verdict"]) == (3, False, None)
    proofs = json.loads(files[entry["proof"]])
    assert [proof["leafIndex"] for proof in proofs] == [1, 3, 5]
    assert verify_bundle(tmp_path, filtered_bundle, "--key", load_verifier_key(service_with_records)) == 0
    printed = capsys.readouterr().out
    assert "completeness is not verified" in printed
    assert 'filters according to the manifest, which is not signed: entityId="E-1"' in printed


def test_a_bundle_filter_that_excludes_nothing_leaves_the_chain_complete(service_with_records: Service) -> None:
    """If the date range of a bundle excludes no record of a chain, the chain is marked as complete."""
    editor = service_with_records.create_client("editor@t")
    content = read_bundle_files(
        download_bundle(editor, scopes=CHAINS[:1], startDate="2020-01-01", endDate="2100-01-01T00:00:00Z")
    )
    assert json.loads(content["manifest.json"])["chains"][0]["complete"] is True
    content = read_bundle_files(download_bundle(editor, scopes=CHAINS[:1], endDate="2020-01-01"))
    [entry] = json.loads(content["manifest.json"])["chains"]
    assert (entry["complete"], entry["records"], content[entry["proof"]]) == (False, 0, b"[]")


def test_only_creator_and_administrators_can_read_a_bundle(service_with_records: Service) -> None:
    """Only the creator of a bundle and administrators can read the bundle.

    Other members get 404, and so do the routes for downloads.
    """
    editor, admin = service_with_records.create_client("editor@t"), service_with_records.create_client("admin@t")
    job = build_bundle(admin, scopes=CHAINS[2:3])
    assert check_problem(editor.get(job["statusUrl"]), 404, "BUNDLE_NOT_FOUND")
    assert admin.get(job["statusUrl"]).status_code == 200
    assert check_problem(admin.get(f"/oi-api/downloads/{job['bundleId']}"), 404, "DOWNLOAD_NOT_FOUND")
    assert job["bundleId"] in [each["bundleId"] for each in admin.get(BUNDLES).json()["bundles"]]
    assert job["bundleId"] not in [each["downloadId"] for each in admin.get("/oi-api/downloads").json()["downloads"]]
    assert check_problem(admin.delete(job["statusUrl"]), 409, "BUNDLE_ENDED")
    check_problem(
        service_with_records.create_client("viewer@t").post(BUNDLES, json={"scopes": CHAINS[:1]}),
        403,
        "ACCESS_RIGHT_MISSING",
    )


INVALID: dict[str, tuple[dict[str, Any], str, str]] = {
    "none": ({"scopes": []}, "scopes", "INVALID_REQUEST"),
    "unknown target": ({"scopes": [{"target": "X"}]}, "scopes[0].target", "TARGET_UNKNOWN"),
    "no scope": ({"scopes": [{"target": "DomainEvents"}]}, "scopes[0].target", "TARGET_SCOPE_MISMATCH"),
    "empty scope": (
        {"scopes": [{"target": "DomainEvents", "scopeKey": ""}]}, "scopes[0].scopeKey", "SCOPE_KEY_REQUIRED",
    ),
    "surplus scope": (
        {"scopes": [{"target": "PlatformConfig", "scopeKey": "s"}]}, "scopes[0].target", "TARGET_SCOPE_MISMATCH",
    ),
    "twice": ({"scopes": [CHAINS[2], CHAINS[2]]}, "scopes[1].target", "INVALID_REQUEST"),
    "unknown member": ({"scopes": CHAINS[:1], "entityID": "x"}, "entityID", "INVALID_REQUEST"),
    "unknown member of a scope": ({"scopes": [{**CHAINS[0], "scope": "x"}]}, "scopes[0].scope", "INVALID_REQUEST"),
    "bad date": ({"scopes": CHAINS[:1], "startDate": "yesterday"}, "startDate", "INVALID_REQUEST"),
    "bad offset": ({"scopes": CHAINS[:1], "endDate": "2026-01-05T08:00:00+02:99"}, "endDate", "INVALID_REQUEST"),
    "order": (
        {"scopes": CHAINS[:1], "startDate": "2026-02-01", "endDate": "2026-01-01"}, "startDate", "INVALID_REQUEST",
    ),
    "empty entity": ({"scopes": CHAINS[:1], "entityId": ""}, "entityId", "INVALID_REQUEST"),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_invalid_bundle_requests_are_rejected(service: Service, name: str) -> None:
    """An invalid body is rejected with 400, and the reply names the field and the rule."""
    body, field, code = INVALID[name]
    assert check_failing_fields(service.create_client("admin@t").post(BUNDLES, json=body), code=code) == [field]


def test_the_verifier_reports_the_break_of_a_bundled_chain(service_with_records: Service, tmp_path: Path) -> None:
    """A bundle of a broken chain has all records, and the verifier reports the same break as the service.

    If a filter excludes no record, the job and the report name the chain as broken.
    """
    editor = service_with_records.create_client("editor@t")
    event = {"ScopeKey": "broken", "ActionType": "A", "EntityType": "T", "EntityID": "original"}
    for _ in range(4):
        assert editor.post(EVENTS, json=event).status_code == 201
    with closing(sqlite3.connect(service_with_records.data_dir / "provenance.sqlite")) as file, file:
        text = "CAST(replace(CAST(canonical AS TEXT), 'original', 'replaced') AS BLOB)"
        where = "WHERE entity_id = 'original' AND sequence = 3"
        assert file.execute(f"UPDATE records SET canonical = {text}, entity_id = 'replaced' {where}").rowcount == 1
    chains = [{"target": "DomainEvents", "scopeKey": SCOPE}, {"target": "DomainEvents", "scopeKey": "broken"}]
    bundle = build_bundle(editor, scopes=chains)
    assert bundle["brokenScopes"] == chains[1:]
    content = download_file(bundle)
    [_, entry] = json.loads(read_bundle_files(content)["manifest.json"])["chains"]
    assert (entry["records"], entry["complete"]) == (4, True)
    assert (entry["verdict"]["ChainValid"], entry["verdict"]["BrokenAt"]) == (False, "000000000003")
    assert verify_bundle(tmp_path, content) == 1
    filtered = build_bundle(editor, scopes=chains, startDate="2020-01-01")
    assert filtered["brokenScopes"] == chains[1:]
    assert read_bundle_files(download_file(filtered))["report.html"].count(b"<td>broken; verify the chain") == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM records WHERE sequence = 2",
        "DELETE FROM records WHERE sequence = 1",
        "DELETE FROM records WHERE sequence > 2",
        "DELETE FROM records WHERE true",
        "UPDATE records SET hash = 'zz' WHERE sequence = 2",
    ],
)
@pytest.mark.parametrize("target", ["DomainEvents", "DomainAmendments"])
def test_a_damaged_chain_does_not_prevent_a_bundle(
    service_with_records: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str, statement: str
) -> None:
    """A bundle has its healthy chains, and damaged ones with their verdict; the verifier reports only these as broken.

    This also holds if filters select some of the records.
    """
    editor, scope = service_with_records.create_client("editor@t"), f"damaged {target} {statement}"
    chain = {"target": target, "scopeKey": scope}
    for number in range(4):
        event = {"ScopeKey": scope, "ActionType": "A", "EntityType": "T", "EntityID": f"E-{number}"}
        if target == "DomainEvents":
            assert editor.post(EVENTS, json=event).status_code == 201
        else:
            create_amendment(editor, scope, EntityID=f"E-{number}")
    download_bundle(editor, scopes=[chain])
    with closing(sqlite3.connect(service_with_records.data_dir / "provenance.sqlite")) as file, file:
        file.execute(f"{statement} AND chain = (SELECT chain FROM chains WHERE scope = ?)", (scope,))
    content = download_bundle(editor, scopes=[*CHAINS[:2], chain], receipts=True)
    *healthy, damaged = json.loads(read_bundle_files(content)["manifest.json"])["chains"]
    assert [entry["verdict"]["ChainValid"] for entry in healthy] == [True, True]
    assert (damaged["verdict"]["ChainValid"], damaged["checkpoint"], damaged["proof"]) == (
        False, "checkpoints/3.txt", None,
    )  # fmt: skip
    assert verify_bundle(tmp_path, content, "--key", load_verifier_key(service_with_records)) == 1
    printed = capsys.readouterr().out
    assert [line.partition(" ")[0] for line in printed.splitlines() if ": broken at" in line] == ["chains/3.json"]
    assert printed.count(": sound: ") == 2
    content = download_bundle(editor, scopes=[CHAINS[0], chain], entityId="E-0", receipts=True)
    _, damaged = json.loads(read_bundle_files(content)["manifest.json"])["chains"]
    is_match_deleted = statement.endswith(("sequence = 1", "true"))
    assert damaged["records"] == (0 if is_match_deleted else 1)
    assert damaged["proof"] is None, "no proof matches the signed root"
    assert verify_bundle(tmp_path, content, "--key", load_verifier_key(service_with_records)) == 1
    advice = "to learn the fault, verify the chain in the service, or request the bundle without filters"
    assert advice in capsys.readouterr().out


def test_a_bundle_survives_a_kill_and_can_be_cancelled(service_with_records: Service, tmp_path: Path) -> None:
    """After a kill, the restarted service completes an unfinished bundle; a cancelled bundle has no file."""
    admin = service_with_records.create_client("admin@t")
    started = admin.post(BUNDLES, json={"scopes": CHAINS}).json()
    service_with_records.kill()
    admin = service_with_records.start().create_client("admin@t")
    job = wait_until(
        lambda: admin.get(started["statusUrl"]).json(), lambda job: job["status"] not in ("pending", "running"), 90
    )
    assert job["status"] == "completed"
    content = httpx.get(job["files"][0]["url"], trust_env=False).content
    assert verify_bundle(tmp_path, content, "--key", load_verifier_key(service_with_records)) == 0
    started = admin.post(BUNDLES, json={"scopes": CHAINS}).json()
    cancelled = admin.delete(started["statusUrl"])
    state = admin.get(started["statusUrl"]).json()
    assert (cancelled.status_code, state["status"]) in {(204, "cancelled"), (409, "completed")}
    assert (state["files"] == []) == (cancelled.status_code == 204)


@pytest.fixture(scope="module")
def bundle_with_receipts(service_with_records: Service) -> bytes:
    """Return a bundle with complete chains and receipts."""
    return download_bundle(service_with_records.create_client("editor@t"), scopes=CHAINS, receipts=True)


def test_a_bundle_has_a_receipt_of_each_record(
    service_with_records: Service, bundle_with_receipts: bytes, complete_bundle: bytes
) -> None:
    """Each record that a checkpoint covers has a receipt, which is valid with the enclosed key set."""
    files = read_bundle_files(bundle_with_receipts)
    key_set = files["verifier-key.cbor"]
    assert (
        key_set
        == service_with_records.create_anonymous_client()
        .get("/.well-known/oi-checkpoint-key", params={"format": "cose"})
        .content
    )
    for number in range(1, 4):
        records = json.loads(files[f"chains/{number}.json"])
        names = [f"receipts/{number}/{record['RecordID']}.cbor" for record in records]
        assert sorted(name for name in files if name.startswith(f"receipts/{number}/")) == names
        for name, record in zip(names, records, strict=True):
            assert verify_inclusion(files[name], record["Hash"], key_set).ok
    assert not any(
        name.startswith("receipts/") or name.endswith(".cbor") for name in read_bundle_files(complete_bundle)
    )
    assert b"verifier-key.cbor" in files["README.txt"]


def test_a_filtered_bundle_has_receipts(service_with_records: Service, tmp_path: Path) -> None:
    """A bundle with the records of one entity has a receipt of each, and the offline verifier accepts them."""
    content = download_bundle(
        service_with_records.create_client("editor@t"), scopes=CHAINS[:1], entityId="E-1", receipts=True
    )
    receipts = [name for name in read_bundle_files(content) if name.startswith("receipts/")]
    assert [name[-17:-5] for name in receipts] == [f"{number:012d}" for number in (2, 4, 6)]
    assert verify_bundle(tmp_path, content, "--key", load_verifier_key(service_with_records)) == 0


def change_files(content: bytes, changes: dict[str, bytes | None]) -> bytes:
    """Return a bundle with changed, added or removed (None) files, and with correct digests."""
    files = {**read_bundle_files(content), **changes}
    kept = {name: each for name, each in files.items() if each is not None and name != "README.txt"}
    lines = "".join(f"{hashlib.sha256(each).hexdigest()}  {name}\n" for name, each in kept.items())
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name, each in {**kept, "README.txt": lines.encode()}.items():
            file.writestr(name, each)
    return target.getvalue()


def test_the_verifier_checks_receipts(
    service_with_records: Service, bundle_with_receipts: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verifier reports a receipt that is missing or superfluous, or belongs to another record or an unknown key."""
    files, keys = read_bundle_files(bundle_with_receipts), tmp_path / "keys.cbor"
    keys.write_bytes(files["verifier-key.cbor"])
    for arguments in (("--key", str(keys)), ("--key", load_verifier_key(service_with_records))):
        assert verify_bundle(tmp_path, bundle_with_receipts, *arguments) == 0
    one, two = "receipts/1/000000000001.cbor", "receipts/1/000000000002.cbor"
    assert verify_bundle(tmp_path, bundle_with_receipts) == 0
    cases: list[tuple[dict[str, bytes | None], str]] = [
        ({one: files[two]}, "for the record 000000000002"),
        ({one: files["receipts/2/000000000001.cbor"]}, "for another checkpoint"),
        ({one: files[one] + b"\0"}, "bytes follow"),
        ({one: files[one][:-1] + bytes([files[one][-1] ^ 1])}, "signature"),
        ({two: None}, "the bundle contains no receipt for this record"),
        ({"receipts/1/000000000099.cbor": files[one]}, "the bundle contains a receipt, but not the record for it"),
        ({"receipts/9/000000000001.cbor": files[one]}, "does not list it"),
        ({"verifier-key.cbor": None}, "does not contain it"),
        ({"verifier-key.cbor": b"\x80"}, "at least one key"),
    ]
    for changes, reason in cases:
        assert verify_bundle(tmp_path, change_files(bundle_with_receipts, changes)) == 1
        assert reason in capsys.readouterr().out


def test_the_signer_of_each_checkpoint_is_printed(
    service_with_records: Service, bundle_with_receipts: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ``--key``, the verifier prints the fingerprint of each enclosed key, and which of them signed a chain."""
    files, (private, added) = read_bundle_files(bundle_with_receipts), create_key()
    numbers = private.public_key().public_numbers()
    first = cbor2.loads(files["verifier-key.cbor"])[0]
    second = {**first, 2: added.key_id, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
    note = sign_checkpoint(files["checkpoints/1.txt"], private, added)
    changes: dict[str, bytes | None] = {
        "checkpoints/1.txt": note,
        "verifier-key.cbor": cbor2.dumps([first, second], canonical=True),
    }
    known = VerifierKey.parse(load_verifier_key(service_with_records))
    assert verify_bundle(tmp_path, change_files(bundle_with_receipts, changes)) == 0
    lines = capsys.readouterr().out.splitlines()
    fingerprints = [line.split("SHA-256 ")[1] for line in lines if line.startswith("enclosed key")]
    assert [text.partition(":")[0] for text in fingerprints] == [known.fingerprint, added.fingerprint]
    signers = [line.rpartition("signed by the unconfirmed key with SHA-256 ")[2] for line in lines if "chains/" in line]
    assert signers == [added.fingerprint, known.fingerprint, known.fingerprint]


def test_a_bundle_has_no_receipts_of_a_broken_chain(service_with_records: Service) -> None:
    """If a chain is broken, a bundle with all or some of its records contains no receipts of the chain."""
    editor, scope = service_with_records.create_client("editor@t"), "broken receipts of a bundle"
    chain = {"target": "DomainEvents", "scopeKey": scope}
    records = [
        editor.post(EVENTS, json={"ScopeKey": scope, "ActionType": "A", "EntityType": "T", "EntityID": f"E-{number}"})
        for number in range(3)
    ]
    assert (
        len(
            [
                name
                for name in read_bundle_files(download_bundle(editor, scopes=[chain], receipts=True))
                if "receipts/" in name
            ]
        )
        == 3
    )
    with closing(sqlite3.connect(service_with_records.data_dir / "provenance.sqlite")) as file, file:
        edit = "UPDATE records SET canonical = replace(canonical, 'E-1', 'E-9') WHERE hash = ?"
        file.execute(edit, (records[1].json()["Hash"],))
    for filters in ({}, {"startDate": "2020-01-01T00:00:00Z", "endDate": "2020-01-02T00:00:00Z"}, {"entityId": "E-1"}):
        files = read_bundle_files(download_bundle(editor, scopes=[chain], receipts=True, **filters))
        assert not [name for name in files if name.startswith("receipts/")]


def test_the_field_receipts_must_be_a_boolean(service_with_records: Service) -> None:
    """The field `receipts` of a request must be true or false."""
    reply = service_with_records.create_client("editor@t").post(BUNDLES, json={"scopes": CHAINS[:1], "receipts": "yes"})
    assert check_failing_fields(reply) == ["receipts"]
