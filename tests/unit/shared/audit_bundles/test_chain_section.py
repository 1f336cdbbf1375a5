"""Tests of the files of one chain in an audit bundle."""

import base64
import json
import shutil
import sqlite3
import zipfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shared.audit_bundles.bundle_file import BundleFile
from shared.audit_bundles.chain_section import ChainSection, ChainSources
from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.key_files import FileNoteSigner, rotate_checkpoint_key
from shared.catalog.document import load_document
from shared.errors import Kind, WorkspaceError
from shared.provenance import chain_trees, inclusion_proofs
from shared.provenance.checkpoints import build_checkpoint_name_prefix
from shared.provenance.merkle import is_included
from shared.provenance.merkle_tiles import Tiles
from shared.provenance.notes import find_signer_key
from shared.provenance.ports import ChainKey, Filters, Target
from shared.provenance.verifier import VerificationRun
from shared.settings import Settings
from shared.wiring import Services

CHAIN = ChainKey(Target.DOMAIN_EVENTS, "hall")
DOCUMENT = """
workspace: {id: plant-t, name: Test plant}
tier: enterprise
limits: {requestsPerMinute: 1000, concurrent: 10}
policies: {provenance: {requireApproval: true}}
team:
  - {id: ann@t, name: Ann, role: Admin}
"""


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    """Return the services of a new workspace."""
    made = Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    await made.provenance.catalog_service.apply(load_document(DOCUMENT, "workspace"), "apply")
    yield made
    await made.close()


async def _append_event(services: Services, name: str, entity: str = "1") -> None:
    event = {"EntityType": "Test", "EntityID": entity, "ActionType": "Test", "Name": name}
    await services.provenance.audit_log.append(CHAIN.target, "ann@t", event, append_id=name, scope_key=CHAIN.scope_key)


async def _write_section(
    services: Services, folder: Path, entity: str = "", *, with_receipts: bool = False
) -> dict[str, Any]:
    provenance, runtime = services.provenance, services.runtime
    sources = ChainSources(
        provenance.chain_store,
        provenance.checkpoints,
        provenance.verifier,
        provenance.receipts.roots,
        provenance.chain_overview,
        runtime,
    )

    async def continue_build() -> None:
        pass

    async with BundleFile(folder / "bundle.zip", runtime) as file:
        filters = Filters(equal={"EntityID": entity} if entity else {})
        section = ChainSection(sources, CHAIN, filters, 1, continue_build, with_receipts=with_receipts)
        return await section.write_files_and_build_manifest_entry(file)


def _list_files(folder: Path) -> list[str]:
    with zipfile.ZipFile(folder / "bundle.zip") as file:
        return file.namelist()


def _read_record_ids(folder: Path) -> list[str]:
    with zipfile.ZipFile(folder / "bundle.zip") as file:
        return [record["RecordID"] for record in json.loads(file.read("chains/1.json"))]


async def _is_checkpoint_signed_by_current_key(services: Services, folder: Path) -> bool:
    with zipfile.ZipFile(folder / "bundle.zip") as file:
        note = file.read("checkpoints/1.txt")
    return find_signer_key(note, [await services.provenance.checkpoints.load_verifier_key()]) is not None


def _damage(folder: Path, *statements: str) -> None:
    """Run SQL statements in the store, in which the chain is the last one."""
    with closing(sqlite3.connect(folder / "provenance.sqlite")) as file, file:
        for statement in statements:
            file.execute(f"{statement} AND chain = (SELECT max(chain) FROM chains)")


async def _append_signed_events(services: Services, count: int = 4) -> None:
    for number in range(1, count + 1):
        await _append_event(services, f"event {number}", f"entity {number}")
    await services.provenance.checkpoints.create_if_grown(CHAIN)


async def test_a_bundle_has_no_records_that_were_added_after_the_signature_of_an_empty_chain(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the first record of a chain is added while a bundle signs the chain, the bundle states that it is empty."""
    load_newest_verified = services.provenance.checkpoints.load_newest_verified

    async def load_then_append(chain: ChainKey, **options: bool) -> Any:
        try:
            return await load_newest_verified(chain, **options)
        finally:
            await _append_event(services, "first")

    monkeypatch.setattr(services.provenance.checkpoints, "load_newest_verified", load_then_append)
    entry = await _write_section(services, tmp_path)
    assert (entry["records"], entry["checkpoint"], entry["proof"]) == (0, None, None)
    assert (entry["verdict"]["Empty"], entry["verdict"]["Reason"]) == (True, "nothing to check")


async def test_a_bundle_has_the_records_of_a_chain_that_cannot_be_signed(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If a chain cannot be signed, the bundle has its last checkpoint, which the current key verifies, but no proof."""
    await _append_event(services, "first")
    await services.provenance.checkpoints.create_if_grown(CHAIN)
    rotate_checkpoint_key(tmp_path / "checkpoint-key.pem")
    await _append_event(services, "second")

    async def refuse(chain: ChainKey) -> None:
        raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", f"{chain.target} differs from its checkpoint.")

    monkeypatch.setattr(services.provenance.checkpoints, "create_if_grown", refuse)
    entry = await _write_section(services, tmp_path)
    assert (entry["records"], entry["checkpoint"], entry["proof"]) == (2, "checkpoints/1.txt", None)
    assert await _is_checkpoint_signed_by_current_key(services, tmp_path)


async def test_a_bundle_is_retried_if_the_current_key_cannot_sign_a_checkpoint_of_a_retired_key(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the current key cannot be reached, no bundle gets a checkpoint that only a retired key has signed."""
    await _append_signed_events(services)
    rotate_checkpoint_key(tmp_path / "checkpoint-key.pem")

    async def fail(_signer: FileNoteSigner, _message: bytes) -> bytes:
        raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", "The key does not respond; retry later.")

    with monkeypatch.context() as patch:
        patch.setattr(FileNoteSigner, "sign", fail)
        with pytest.raises(WorkspaceError) as caught:
            await _write_section(services, tmp_path)
    assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"
    await _write_section(services, tmp_path)
    assert await _is_checkpoint_signed_by_current_key(services, tmp_path)


@pytest.mark.parametrize("entity", ["", "entity 3"])
async def test_a_bundle_has_the_proofs_of_a_chain_whose_signature_for_receipts_is_damaged(
    services: Services, tmp_path: Path, entity: str
) -> None:
    """If the signature for receipts is damaged, a bundle has the proofs of the chain, but no receipts."""
    await _append_signed_events(services)
    (signature,) = (tmp_path / "checkpoints").rglob("*.cose")
    signature.chmod(0o600)
    signature.write_bytes(signature.read_bytes()[:-1])
    entry = await _write_section(services, tmp_path, entity, with_receipts=True)
    assert (entry["records"], entry["complete"]) == ((1, False) if entity else (4, True))
    assert (entry["checkpoint"], entry["proof"]) == ("checkpoints/1.txt", "proofs/1.json")
    assert not [file for file in _list_files(tmp_path) if file.startswith("receipts/")]


async def test_a_bundle_is_retried_if_the_key_is_replaced_during_signing(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the signing key is replaced while a chain is signed, the bundle is not completed without a checkpoint."""
    await _append_event(services, "first")
    sign = FileNoteSigner.sign

    async def replace_key_and_sign(signer: FileNoteSigner, message: bytes) -> bytes:
        rotate_checkpoint_key(tmp_path / "checkpoint-key.pem")
        return await sign(signer, message)

    with monkeypatch.context() as patch:
        patch.setattr(FileNoteSigner, "sign", replace_key_and_sign)
        with pytest.raises(WorkspaceError) as caught:
            await _write_section(services, tmp_path)
    assert caught.value.kind is Kind.UNAVAILABLE
    assert (await _write_section(services, tmp_path))["proof"] == "proofs/1.json"


HEAD_AT_2 = (
    "UPDATE chains SET sequence = 2, hash = (SELECT hash FROM records WHERE records.chain = chains.chain AND "
    "records.sequence = 2) WHERE true"
)
DAMAGES = {
    "a gap": (["DELETE FROM records WHERE sequence = 2"], [1, 3, 4]),
    "first record deleted": (["DELETE FROM records WHERE sequence = 1"], [2, 3, 4]),
    "tail deleted": (["DELETE FROM records WHERE sequence > 2"], [1, 2]),
    "tail deleted and head item set back": (["DELETE FROM records WHERE sequence > 2", HEAD_AT_2], [1, 2]),
    "head item set back": ([HEAD_AT_2], [1, 2, 3, 4]),
    "all records deleted": (["DELETE FROM records WHERE true"], []),
    "head item deleted": (["UPDATE chains SET sequence = 0, hash = '' WHERE true"], [1, 2, 3, 4]),
    "head item removed": (["DELETE FROM chains WHERE true"], [1, 2, 3, 4]),
    "head item renamed": (["UPDATE chains SET scope = 'other' WHERE true"], [1, 2, 3, 4]),
    "head item and second record removed": (
        ["DELETE FROM records WHERE sequence = 2", "DELETE FROM chains WHERE true"],
        [1, 3, 4],
    ),
    "a Hash that is not hexadecimal": (["UPDATE records SET hash = 'zz' WHERE sequence = 2"], [1, 2, 3, 4]),
    "another Hash": ([f"UPDATE records SET hash = '{'ab' * 32}' WHERE sequence = 2"], [1, 2, 3, 4]),
}
"""Statements that damage a chain of four records, and the records that remain."""


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("is_signed", [True, False])
async def test_a_bundle_has_a_broken_chain_with_its_verdict(
    services: Services, tmp_path: Path, name: str, *, is_signed: bool
) -> None:
    """A broken chain is in the bundle with all its records, its verdict and its last checkpoint, but without proof."""
    statements, remaining = DAMAGES[name]
    await _append_signed_events(services)
    if not is_signed:
        shutil.rmtree(tmp_path / "checkpoints")
    _damage(tmp_path, *statements)
    entry = await _write_section(services, tmp_path, with_receipts=True)
    assert entry["verdict"]["ChainValid"] is False
    assert (entry["complete"], entry["proof"], entry["records"]) == (True, None, len(remaining))
    assert _read_record_ids(tmp_path) == [f"{sequence:012d}" for sequence in remaining]
    assert entry["checkpoint"] == "checkpoints/1.txt" or not is_signed
    assert not [file for file in _list_files(tmp_path) if file.startswith(("proofs/", "receipts/"))]


@pytest.mark.parametrize("name", DAMAGES)
async def test_a_broken_chain_is_incomplete_in_a_filtered_bundle(services: Services, tmp_path: Path, name: str) -> None:
    """A filtered bundle of a broken chain may lack records of it, also if the filters exclude none."""
    for number in range(1, 5):
        await _append_event(services, f"event {number}", "pump")
    await services.provenance.checkpoints.create_if_grown(CHAIN)
    _damage(tmp_path, *DAMAGES[name][0])
    entry = await _write_section(services, tmp_path, "pump", with_receipts=True)
    assert (entry["complete"], entry["verdict"]) == (False, None)
    assert entry["proof"] is None or not entry["records"]
    assert not [file for file in _list_files(tmp_path) if file.startswith("receipts/")]


async def test_the_verification_of_a_bundle_replaces_the_last_verdict(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The result of the verification of a whole chain for a bundle is stored, like that of a requested one.

    A valid result has the time of the start: the chain may have grown since, in an earlier period.
    """
    overview, start = services.provenance.chain_overview, services.provenance.verifier.start
    runs: list[VerificationRun] = []

    async def start_and_remember(chain: ChainKey) -> VerificationRun:
        runs.append(await start(chain))
        return runs[-1]

    monkeypatch.setattr(services.provenance.verifier, "start", start_and_remember)
    await _append_signed_events(services)
    await _write_section(services, tmp_path, "entity 1")
    assert await overview.find_verdict(CHAIN) is None
    await _write_section(services, tmp_path)
    valid = await overview.find_verdict(CHAIN)
    assert valid is not None
    assert (valid.is_valid, valid.records, valid.verified_at) == (True, 4, runs[-1].started_at)
    _damage(tmp_path, "DELETE FROM records WHERE sequence = 2")
    entry = await _write_section(services, tmp_path)
    broken = await overview.find_verdict(CHAIN)
    assert broken is not None
    assert (broken.is_valid, broken.reason) == (False, entry["verdict"]["Reason"])
    assert broken.verified_at > runs[-1].started_at


@pytest.mark.parametrize("name", ["a gap", "a Hash that is not hexadecimal", "another Hash"])
async def test_a_filtered_bundle_has_the_records_of_a_damaged_chain(
    services: Services, tmp_path: Path, name: str
) -> None:
    """If the proofs of a filtered chain cannot be computed, the bundle has its records and its checkpoint only."""
    await _append_signed_events(services)
    _damage(tmp_path, *DAMAGES[name][0])
    entry = await _write_section(services, tmp_path, "entity 3", with_receipts=True)
    assert (entry["complete"], entry["verdict"], entry["records"]) == (False, None, 1)
    assert (entry["checkpoint"], entry["proof"]) == ("checkpoints/1.txt", None)
    assert _read_record_ids(tmp_path) == ["000000000003"]
    assert not [file for file in _list_files(tmp_path) if file.startswith(("proofs/", "receipts/"))]


async def test_a_filtered_bundle_has_no_proofs_of_changed_hashes_under_a_cached_root(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the Hash of another record in a subtree is changed, a bundle has no proofs that contradict the signed root."""
    for module in (chain_trees, inclusion_proofs):
        monkeypatch.setattr(module, "SUBTREE_LEAVES", 4)
    await _append_signed_events(services, 6)
    _damage(tmp_path, *DAMAGES["another Hash"][0])
    entry = await _write_section(services, tmp_path, "entity 1", with_receipts=True)
    assert (entry["records"], entry["checkpoint"], entry["proof"]) == (1, "checkpoints/1.txt", None)
    assert not [file for file in _list_files(tmp_path) if file.startswith(("proofs/", "receipts/"))]


@pytest.mark.parametrize("entity", ["", "entity 5"])
async def test_the_proofs_of_a_bundle_match_the_checkpoint_after_a_repair(
    services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, entity: str
) -> None:
    """Subtree roots that were stored while a Hash was damaged are computed again, so that the proofs are valid."""
    for module in (chain_trees, inclusion_proofs):
        monkeypatch.setattr(module, "SUBTREE_LEAVES", 4)
    await _append_signed_events(services, 6)
    await Tiles(FileCheckpointStore(tmp_path / "checkpoints"), build_checkpoint_name_prefix).save_subtree_roots(
        CHAIN, 0, [b"x" * 32]
    )
    await services.close()
    again = Services(Settings.read({"DATA_DIR": str(tmp_path)}))
    entry = await _write_section(again, tmp_path, entity, with_receipts=True)
    assert entry["proof"] == "proofs/1.json"
    with zipfile.ZipFile(tmp_path / "bundle.zip") as file:
        read = json.loads(file.read("proofs/1.json"))
    proof = read[0] if entity else read
    checkpoint = (await again.provenance.checkpoints.load_newest_verified(CHAIN)).checkpoint
    [leaf] = await again.provenance.chain_store.read_hashes(CHAIN, proof["leafIndex"], limit=1)
    path = [base64.b64decode(one) for one in proof["hashes"]]
    assert is_included(bytes.fromhex(leaf), proof["leafIndex"], proof["size"], path, checkpoint.root)
    assert "receipts/1/000000000005.cbor" in _list_files(tmp_path)
    await again.close()
