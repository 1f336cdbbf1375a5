"""Tests that the verifier reads audit bundles within limits; tests/service verifies bundles of the service."""

import errno
import hashlib
import json
import re
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from oi.verification.bundle import BundleResult, verify_bundle
from oi.verification.bundle_files import MAX_FILE_BYTES, BundleFiles
from oi.verification.export import BrokenError

VECTORS = Path(__file__).parents[2] / "vectors"
CHAIN = json.loads((VECTORS / "proofs.json").read_text(encoding="utf-8"))
COUNT = len(CHAIN["records"])
LARGE = bytes(32 * 1024 * 1024)
MEMORY = 24 * 1024 * 1024
"""Maximum memory of a verification in bytes: a file that is read as a whole, and what it needs besides."""
VERDICT = {
    "Valid": None,
    "ChainValid": True,
    "Empty": False,
    "Record": None,
    "RecomputedHash": None,
    "BrokenAt": None,
    "ForkDetected": False,
    "Reason": f"{COUNT} records, all sound",
    "Target": CHAIN["target"],
}
MANIFEST: dict[str, Any] = {
    "workspace": CHAIN["workspace"],
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "createdBy": "ann",
    "filters": {"startDate": None, "endDate": None, "entityId": None},
    "chains": [
        {
            "target": CHAIN["target"],
            "scopeKey": CHAIN["scopeKey"],
            "file": "chains/1.json",
            "records": COUNT,
            "complete": True,
            "checkpoint": "checkpoints/1.txt",
            "proof": None,
            "verdict": VERDICT,
        }
    ],
}
FILES: dict[str, bytes] = {
    "manifest.json": json.dumps(MANIFEST).encode(),
    "verifier-key.txt": CHAIN["verifierKey"].encode(),
    "report.html": b"",
    "chains/1.json": json.dumps(CHAIN["records"]).encode(),
    "checkpoints/1.txt": CHAIN["checkpoints"][-1]["signedNote"].encode(),
}


def write_bundle(
    path: Path,
    files: Mapping[str, bytes],
    *,
    unlisted: Mapping[str, bytes] | None = None,
    method: int = zipfile.ZIP_DEFLATED,
    readme_start: bytes = b"",
) -> Path:
    """Write a bundle whose README lists its files, except the ``unlisted`` ones, which are compressed by ``method``."""
    digests = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, "README.txt": readme_start + digests.encode()}.items():
            archive.writestr(name, content)
        for name, content in (unlisted or {}).items():
            archive.writestr(name, content, method)
    return path


def verify_in_little_memory(path: Path) -> BundleResult:
    """Verify a bundle by its own keys, and check that the verification uses little memory."""
    tracemalloc.start()
    try:
        return verify_bundle(path, [])
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY


def test_a_bundle_is_verified_record_by_record(tmp_path: Path) -> None:
    """A bundle with a complete chain and its checkpoint is verified by the enclosed key."""
    result = verify_bundle(write_bundle(tmp_path / "b.zip", FILES), [])
    assert (result.faults, result.undecided) == ([], [])
    assert any(f"agrees with itself: {COUNT} records, checkpoint of {COUNT} agrees" in line for line in result.lines)


@pytest.mark.parametrize(
    ("stated", "reason"),
    [(4, "more than 4 records"), (COUNT + 1, f"{COUNT} records; the manifest counts {COUNT + 1}")],
)
def test_the_number_of_records_must_be_that_of_the_manifest(tmp_path: Path, stated: int, reason: str) -> None:
    """The verifier reads no more records than the manifest states, and reports another number of records."""
    manifest = {**MANIFEST, "chains": [{**MANIFEST["chains"][0], "records": stated}]}
    files = FILES | {"manifest.json": json.dumps(manifest).encode()}
    [fault] = verify_bundle(write_bundle(tmp_path / "b.zip", files), []).faults
    assert f"broken at chains/1.json: the file has {reason}" in fault


def test_unreadable_records_do_not_hide_an_earlier_fault(tmp_path: Path) -> None:
    """If a record is missing and a later one cannot be read, the result names the first record after the gap."""
    without_second = [*CHAIN["records"][:1], *CHAIN["records"][2:]]
    files = FILES | {"chains/1.json": json.dumps(without_second).encode()[:-1]}
    [fault] = verify_bundle(write_bundle(tmp_path / "b.zip", files), []).faults
    assert "broken at 000000000003: " in fault


PROOFS = [
    {"leafIndex": each["sequence"] - 1, "size": COUNT, "hashes": each["hashes"]}
    for each in CHAIN["inclusion"]
    if each["size"] == COUNT
]


@pytest.mark.parametrize(
    ("proofs", "reason"),
    [
        (PROOFS, ""),
        (PROOFS[:-1], "broken at proofs/1.json: the file has fewer proofs than records"),
        ([*PROOFS, PROOFS[-1]], "broken at proofs/1.json: the file has more proofs than records"),
    ],
    ids=["equal", "fewer", "more"],
)
def test_a_filtered_chain_needs_one_proof_for_each_record(tmp_path: Path, proofs: list[Any], reason: str) -> None:
    """The verifier reports the file of proofs if it has fewer or more proofs than the filtered chain has records."""
    manifest = {
        **MANIFEST,
        "filters": {**MANIFEST["filters"], "startDate": "2026-01-01T00:00:00.000000Z"},
        "chains": [{**MANIFEST["chains"][0], "complete": False, "verdict": None, "proof": "proofs/1.json"}],
    }
    files = FILES | {"manifest.json": json.dumps(manifest).encode(), "proofs/1.json": json.dumps(proofs).encode()}
    faults = verify_bundle(write_bundle(tmp_path / "b.zip", files), []).faults
    assert [fault.partition("): ")[2] for fault in faults] == ([reason] if reason else [])


UNLISTED = "the bundle contains this file, but README.txt does not list it"
COMPRESSED = "the file is compressed by another method than Deflate"


@pytest.mark.parametrize(
    ("method", "reason"),
    [(zipfile.ZIP_BZIP2, COMPRESSED), (zipfile.ZIP_DEFLATED, UNLISTED)],
)
def test_unlisted_files_are_not_unpacked(tmp_path: Path, method: int, reason: str) -> None:
    """A file that nothing lists, or that is compressed by another method than Deflate, is rejected unread."""
    path = write_bundle(tmp_path / "b.zip", FILES, unlisted={"chains/9.json": LARGE}, method=method)
    with pytest.raises(BrokenError, match=re.escape(reason)) as broken:
        verify_in_little_memory(path)
    assert broken.value.broken_at == "chains/9.json"


def test_a_file_that_only_the_readme_lists_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the README lists but the manifest does not list is rejected before its digest is computed."""
    path = write_bundle(tmp_path / "b.zip", FILES | {"chains/9.json": LARGE})
    read: list[str] = []
    original = BundleFiles.compute_sha256

    def compute_and_remember(files: BundleFiles, name: str) -> str:
        read.append(name)
        return original(files, name)

    monkeypatch.setattr(BundleFiles, "compute_sha256", compute_and_remember)
    with pytest.raises(BrokenError, match=r"manifest\.json does not list it"):
        verify_in_little_memory(path)
    assert read == ["manifest.json"]


@pytest.mark.parametrize("name", ["manifest.json", "verifier-key.txt", "checkpoints/1.txt"])
def test_a_large_file_that_is_read_as_a_whole_is_rejected(tmp_path: Path, name: str) -> None:
    """A manifest, key or checkpoint above the limit is rejected before it is unpacked."""
    path = write_bundle(tmp_path / "b.zip", FILES | {name: LARGE})
    reason = f"the file has more than {MAX_FILE_BYTES:,} bytes"
    try:
        [fault] = verify_in_little_memory(path).faults
    except BrokenError as error:
        fault = f"{error.broken_at}: {error}"
    assert f"{name}: {reason}" in fault


def test_a_large_readme_is_rejected_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A README file that is much larger than the list of the bundle's files is rejected before it is unpacked."""
    path = write_bundle(tmp_path / "b.zip", FILES, readme_start=b"\n" * 70_000)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(BrokenError, match=r"the file has more than 6\d,\d{3} bytes") as broken:
        verify_bundle(path, [])
    assert broken.value.broken_at == "README.txt"


@pytest.mark.parametrize("start", [b"", b'[{"a":"', b"[" + b" " * 1_000, FILES["chains/1.json"][:-1]])
def test_a_large_file_of_records_needs_little_memory(tmp_path: Path, start: bytes) -> None:
    """A listed file that unpacks to much more than genuine records have is reported as broken, in little memory."""
    path = write_bundle(tmp_path / "b.zip", FILES | {"chains/1.json": start + LARGE})
    [fault] = verify_in_little_memory(path).faults
    assert "broken at chains/1.json: " in fault


@pytest.mark.parametrize(("number", "kind"), [(errno.EIO, OSError), (errno.EINVAL, BrokenError)])
def test_a_failed_disk_is_no_damaged_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    """A failure to read is raised as it is; a position that does not exist in the zip file is a damage of the file."""

    def fail(*_: object) -> None:
        raise OSError(number, "failed")

    path = write_bundle(tmp_path / "b.zip", FILES)
    monkeypatch.setattr(zipfile.ZipExtFile, "read", fail)
    with pytest.raises(kind, match="failed"):
        verify_bundle(path, [])


def test_a_file_beyond_its_stated_size_is_damaged(tmp_path: Path) -> None:
    """A file that unpacks to more bytes than the zip file states is reported as damaged."""
    path = write_bundle(tmp_path / "b.zip", FILES)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("chains/1.json").file_size
    assert path.read_bytes().count(size.to_bytes(4, "little")) == 2
    path.write_bytes(path.read_bytes().replace(size.to_bytes(4, "little"), b"\x05\0\0\0"))
    with pytest.raises(BrokenError, match="the file is damaged") as broken:
        verify_bundle(path, [])
    assert broken.value.broken_at == "chains/1.json"
