"""Tests of the page about receipts: with only the files of a bundle, an auditor can prove a record."""

import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.service.local_service import ROOT, Service

PAGE = (ROOT / "docs" / "how-to" / "verify-a-receipt.md").read_text(encoding="utf-8")
PROGRAM, WITH_SCITT_COSE = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMAND, OI_COMMAND = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SUBJECT = "oi-provenance/plant-a/DomainEvents/receipt%20of%20a%20page"


@pytest.fixture(scope="module")
def bundle_folder(plant: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of a bundle and the programs on the page."""
    editor, scope = plant.create_client("editor@plant-a.example"), "receipt of a page"
    for state in ({"ph": 7.0, "tiny": 1e-7}, {"Grüße": '"\\', "Hash": "nested"}, {"n": 1e20}):
        event = {"ActionType": "A", "EntityType": "T", "EntityID": "E", "AfterState": state, "ScopeKey": scope}
        assert editor.post("/oi-api/provenance/events", json=event).status_code == 201
    body = {"scopes": [{"target": "DomainEvents", "scopeKey": scope}], "receipts": True}
    job = editor.post("/oi-api/provenance/bundles", json=body, headers={"Prefer": "wait=30"}).json()
    found = tmp_path_factory.mktemp("auditor")
    with zipfile.ZipFile(io.BytesIO(httpx.get(job["files"][0]["url"], trust_env=False).content)) as file:
        file.extractall(found)
    (found / "verify_receipt.py").write_text(PROGRAM, encoding="utf-8")
    (found / "verify_with_scitt_cose.py").write_text(WITH_SCITT_COSE, encoding="utf-8")
    return found


def run_program(bundle_folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the page in the folder of the bundle."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=bundle_folder, capture_output=True, text=True, check=False, timeout=60)


def test_the_program_has_at_most_sixty_lines() -> None:
    """The program on the page has at most 60 lines and needs only cbor2 and cryptography."""
    assert len(PROGRAM.splitlines()) <= 60
    imported = set(re.findall(r"^(?:import|from) (\w+)", PROGRAM, re.MULTILINE))
    assert imported - set(sys.stdlib_module_names) == {"cbor2", "cryptography"}


def test_the_program_proves_each_record(bundle_folder: Path) -> None:
    """The command on the page proves one record, and the program proves each record of the bundle."""
    arguments = COMMAND.split()[1:]
    done = run_program(bundle_folder, *arguments)
    assert done.stdout.startswith(f"record 2 of 3 is in {SUBJECT}, signed by "), done.stderr
    for number in (1, 3):
        arguments[1] = f"receipts/1/{number:012d}.cbor"
        assert run_program(bundle_folder, *arguments).stdout.startswith(f"record {number} of 3 is in {SUBJECT}")


def test_the_program_rejects_changed_records_receipts_and_keys(bundle_folder: Path) -> None:
    """The program ends with an error for a changed record, a changed receipt, or the wrong keys."""
    name, record = "receipts/1/000000000002.cbor", (bundle_folder / "chains/1.json").read_text(encoding="utf-8")
    (bundle_folder / "changed.json").write_text(record.replace("nested", "Nested"), encoding="utf-8")
    receipt = (bundle_folder / name).read_bytes()
    (bundle_folder / "changed.cbor").write_bytes(receipt[:-1] + bytes([receipt[-1] ^ 1]))
    (bundle_folder / "other.cbor").write_bytes(b"\x80")
    good = ["verify_receipt.py", name, "chains/1.json", "verifier-key.cbor"]
    for place, other, reason in (
        (1, "changed.cbor", "InvalidSignature"),
        (2, "changed.json", "the record was changed"),
        (3, "other.cbor", "not enough values"),
    ):
        done = run_program(bundle_folder, *good[:place], other, *good[place + 1 :])
        assert done.returncode == 1
        assert reason in done.stderr


def test_scitt_cose_proves_a_record(bundle_folder: Path) -> None:
    """The program with scitt-cose confirms the Hash of a record and rejects other Hashes."""
    hashes = re.findall(r'"Hash":"([0-9a-f]{64})"', (bundle_folder / "chains/1.json").read_text(encoding="utf-8"))
    files = ("receipts/1/000000000002.cbor", "verifier-key.cbor")
    done = run_program(bundle_folder, "verify_with_scitt_cose.py", files[0], hashes[1], files[1])
    assert (done.returncode, done.stdout) == (0, f"{SUBJECT} 3 1\n"), done.stderr
    assert run_program(bundle_folder, "verify_with_scitt_cose.py", files[0], hashes[0], files[1]).returncode == 1


def test_the_client_proves_a_record(bundle_folder: Path) -> None:
    """The command `oi` on the page proves a record."""
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from oi.verification.command import main; "
    arguments = OI_COMMAND.split()[2:]
    done = run_program(
        bundle_folder, "-c", f"{program}sys.exit(main(sys.argv[1:]))", str(ROOT / "client" / "src"), *arguments
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"sound: 000000000002 of 3 records is in {SUBJECT}")
