"""Tests of receipts for records and for the growth of chains, with the independent library scitt-cose."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import cbor2
import pytest
import scitt_cose
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from scitt_cose import merkle

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.key_files import FileNoteSigner, rotate_checkpoint_key
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.errors import WorkspaceError
from shared.provenance import chain_trees, inclusion_proofs
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.checkpoints import Checkpoints, build_checkpoint_name
from shared.provenance.cose import RootSignature
from shared.provenance.merkle_proofs import Proofs
from shared.provenance.notes import VerifierKey
from shared.provenance.ports import ChainKey, Target
from shared.provenance.receipts import Receipts
from shared.provenance.verifier import ChainVerifier
from shared.runtime import Runtime
from tests.unit.shared.provenance.chains import BATCH, PLATFORM, Ledger, build_event, get_workspace_id, open_ledger

ISSUER = "https://plant-a.example"
SIZES = (1, 2, 5, 13)


class CountingSigner(FileNoteSigner):
    """Signer that counts its signatures."""

    count = 0

    async def sign(self, message: bytes) -> bytes:
        """Sign a message and count the call."""
        self.count += 1
        return await super().sign(message)


class Issuer:
    """Receipt service for the chains of a ledger, together with the services that it uses."""

    def __init__(self, ledger: Ledger) -> None:
        path = ledger.folder / "checkpoint-key.pem"
        self.ledger = ledger
        self.notes = FileCheckpointStore(ledger.folder / "checkpoints")
        self.signer = CountingSigner(path, ledger.folder / "checkpoints")
        self.overview = SqliteChainOverview(ledger.folder / "provenance.sqlite")
        self.checkpoints = Checkpoints(
            ledger.store, self.notes, self.signer, get_workspace_id, self.overview, issuer=ISSUER
        )
        proofs = Proofs(ledger.store, self.checkpoints.trees)
        self.receipts = Receipts(ledger.store, self.checkpoints, proofs, self.overview)

    def restart(self) -> Receipts:
        """Return the receipt service of a new process without cached roots."""
        proofs = Proofs(self.ledger.store, ChainTrees(self.ledger.store))
        return Receipts(self.ledger.store, self.checkpoints, proofs, self.overview)

    def find_signatures(self) -> list[Path]:
        """Return the files of all stored receipt signatures."""
        return sorted((self.ledger.folder / "checkpoints").rglob("*.cose"))


async def append_events(ledger: Ledger, chain: ChainKey, count: int) -> None:
    """Append events in one batch."""
    await asyncio.gather(
        *(ledger.events.append_to_chain(chain, "editor", build_event(number)) for number in range(count))
    )


@pytest.fixture
async def receipt_issuer(tmp_path: Path) -> AsyncIterator[Issuer]:
    """Provide a chain of 13 records with four checkpoints, and a chain with a record after its checkpoint."""
    async with open_ledger(tmp_path) as ledger:
        made = Issuer(ledger)
        for old, size in pairwise((0, *SIZES)):
            await append_events(ledger, BATCH, size - old)
            await made.checkpoints.create_if_grown(BATCH)
        await append_events(ledger, PLATFORM, 2)
        await made.checkpoints.create_if_grown(PLATFORM)
        await append_events(ledger, PLATFORM, 1)
        yield made
        await made.overview.close()


def to_pem(key: VerifierKey) -> bytes:
    """Convert a verifier key to PEM."""
    return load_der_public_key(key.spki).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


async def check_error(code: str, receipts: Receipts, sequence: int, size: int | None = None) -> WorkspaceError:
    """Request a receipt and check that it fails with the given error code; return the error."""
    with pytest.raises(WorkspaceError) as raised:
        await receipts.issue_inclusion_receipt(BATCH, sequence, size)
    assert raised.value.code == code
    return raised.value


async def test_scitt_cose_verifies_every_record_in_every_checkpoint(receipt_issuer: Issuer) -> None:
    """scitt-cose accepts the receipt of each record for each checkpoint that covers it."""
    key = to_pem(await receipt_issuer.checkpoints.load_verifier_key())
    records = await receipt_issuer.ledger.records(BATCH)
    for size in SIZES:
        for record in records[:size]:
            receipt = await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, record.sequence, size)
            found = scitt_cose.verify_receipt(receipt, leaf_entry_hex=record.hash, log_public_key_pem=key)
            assert found.ok, found.errors
            assert (found.tree_size, found.leaf_index) == (size, record.sequence - 1)
            assert found.issuer == ISSUER
            assert found.subject == "oi-provenance/plant-a/DomainEvents/batch%2F7%20%2B%C3%BC"
    receipt = await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, 2, None)
    assert not scitt_cose.verify_receipt(receipt, leaf_entry_hex=records[0].hash, log_public_key_pem=key).ok


async def test_scitt_cose_verifies_consistency_receipts(receipt_issuer: Issuer) -> None:
    """scitt-cose accepts a consistency receipt as proof that a newer tree extends an older tree."""
    key = to_pem(await receipt_issuer.checkpoints.load_verifier_key())
    entries = [record.hash for record in await receipt_issuer.ledger.records(BATCH)]
    for old in SIZES[:-1]:
        receipt, size = await receipt_issuer.receipts.issue_growth_receipt(BATCH, old, None)
        assert size == SIZES[-1]
        roots = [merkle.merkle_root(entries[:each]) for each in (old, size)]
        scitt_cose.verify_sign1(receipt, public_key_pem=key, detached_payload=bytes.fromhex(roots[1]))
        proofs = cbor2.loads(receipt).value[1][396]
        assert list(proofs) == [-2]
        found_old, found_size, path = cbor2.loads(proofs[-2][0])
        assert (found_old, found_size) == (old, size)
        assert scitt_cose.verify_consistency(*roots, old, size, [each.hex() for each in path])


async def test_a_receipt_has_the_documented_form(receipt_issuer: Issuer) -> None:
    """A receipt is a COSE_Sign1 with tag 18, four protected headers, one proof and a detached payload."""
    key = await receipt_issuer.checkpoints.load_verifier_key()
    message = cbor2.loads(await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, 1, 1))
    protected, unprotected, payload, signature = message.value
    assert (message.tag, payload, len(signature)) == (18, None, 64)
    subject = "oi-provenance/plant-a/DomainEvents/batch%2F7%20%2B%C3%BC"
    assert cbor2.loads(protected) == {1: -7, 4: key.key_id, 15: {1: ISSUER, 2: subject}, 395: 1}
    assert list(cbor2.loads(protected)) == [1, 4, 15, 395]
    assert unprotected == {396: {-1: (cbor2.dumps([1, 0, []]),)}}


async def test_issuing_a_receipt_uses_no_signing_key(receipt_issuer: Issuer) -> None:
    """Issuing a receipt uses no signing key, because both signatures of a checkpoint are made when it is created."""
    assert receipt_issuer.signer.count == 2 * (len(SIZES) + 1)
    for receipts in (receipt_issuer.receipts, receipt_issuer.restart()):
        first = await receipts.issue_inclusion_receipt(BATCH, 3, None)
        assert await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, 3, 13) == first
        await receipts.issue_growth_receipt(BATCH, 2, 5)
    assert receipt_issuer.signer.count == 2 * (len(SIZES) + 1)


async def test_checkpoints_of_an_earlier_version_get_signatures(receipt_issuer: Issuer) -> None:
    """Roots that earlier versions left unsigned are signed in the background or at the first request, and stored."""
    for file in receipt_issuer.find_signatures():
        file.unlink()
    receipt_issuer = Issuer(receipt_issuer.ledger)
    assert await receipt_issuer.checkpoints.create_all_and_count_them() == 1
    assert [file.name for file in receipt_issuer.find_signatures()] == ["000000000013.cose", "000000000003.cose"]
    assert receipt_issuer.signer.count == 3
    issued = await asyncio.gather(*(receipt_issuer.restart().issue_inclusion_receipt(BATCH, 1, 5) for _ in range(4)))
    assert set(issued) == {await receipt_issuer.restart().issue_inclusion_receipt(BATCH, 1, 5)}
    assert len(receipt_issuer.find_signatures()) == 3
    await receipt_issuer.overview.close()


async def test_a_checkpoint_without_signature_is_signed_on_request(receipt_issuer: Issuer) -> None:
    """A receipt is issued even if the newest checkpoint has no stored signature for receipts yet."""
    for file in receipt_issuer.find_signatures():
        file.unlink()
    assert await receipt_issuer.restart().issue_inclusion_receipt(BATCH, 13, None)


async def test_a_receipt_for_a_record_without_checkpoint_is_not_ready(receipt_issuer: Issuer) -> None:
    """A record without a checkpoint gets the error that its receipt is not ready; a missing record is not found."""
    for chain in (PLATFORM, ChainKey(Target.DOMAIN_EVENTS, "new")):
        if chain != PLATFORM:
            await receipt_issuer.ledger.fill(chain, 3)
        with pytest.raises(WorkspaceError) as raised:
            await receipt_issuer.receipts.issue_inclusion_receipt(chain, 3, None)
        assert (raised.value.code, raised.value.members["retryAfter"]) == ("RECEIPT_NOT_READY", 15)
    await check_error("RECORD_NOT_FOUND", receipt_issuer.receipts, 14)
    await check_error("RECORD_NOT_FOUND", receipt_issuer.receipts, 14, 20)


async def test_a_receipt_for_a_size_without_checkpoint_is_not_found(receipt_issuer: Issuer) -> None:
    """A receipt for a chain size that has no stored checkpoint is not found."""
    await check_error("CHECKPOINT_NOT_FOUND", receipt_issuer.receipts, 2, 4)
    for old, size, code in (
        (3, 5, "CHECKPOINT_NOT_FOUND"),
        (2, 4, "CHECKPOINT_NOT_FOUND"),
        (13, None, "INVALID_REQUEST"),
    ):
        with pytest.raises(WorkspaceError) as raised:
            await receipt_issuer.receipts.issue_growth_receipt(BATCH, old, size)
        assert raised.value.code == code
    with pytest.raises(WorkspaceError) as raised:
        await receipt_issuer.receipts.issue_growth_receipt(ChainKey(Target.DOMAIN_EVENTS, "never"), 1, None)
    assert raised.value.code == "CHECKPOINT_NOT_FOUND"


async def test_a_broken_chain_gets_no_receipts(receipt_issuer: Issuer) -> None:
    """After a verification finds a chain broken, no receipts are issued until a verification finds it valid.

    A request for a checkpoint that does not exist gets the same error as before.
    """
    verifier = ChainVerifier(
        receipt_issuer.ledger.store, get_workspace_id, receipt_issuer.checkpoints, receipt_issuer.overview
    )
    record = (await receipt_issuer.ledger.records(BATCH))[8]
    edit = "UPDATE records SET canonical = ? WHERE hash = ?"

    def damage_record(connection: sqlite3.Connection) -> None:
        connection.execute(edit, (record.canonical.replace(b"Update", b"Delete"), record.hash))

    def repair_record(connection: sqlite3.Connection) -> None:
        connection.execute(edit, (record.canonical, record.hash))

    receipt_issuer.ledger.tamper(damage_record)
    await check_error("CHAIN_BROKEN", receipt_issuer.receipts, 9)
    await check_error("CHECKPOINT_NOT_FOUND", receipt_issuer.receipts, 9, 99_999)
    assert await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, 1, None)
    assert not (await verifier.verify(BATCH)).chain_valid
    assert "000000000009" in (await check_error("CHAIN_BROKEN", receipt_issuer.receipts, 1)).detail
    await check_error("CHECKPOINT_NOT_FOUND", receipt_issuer.receipts, 1, 99_999)
    with pytest.raises(WorkspaceError, match="broken"):
        await receipt_issuer.receipts.issue_growth_receipt(BATCH, 2, 5)
    receipt_issuer.ledger.tamper(repair_record)
    assert (await verifier.verify(BATCH)).chain_valid
    assert await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, 9, None)


async def test_a_broken_chain_does_not_ask_for_a_retry(receipt_issuer: Issuer) -> None:
    """A record that no checkpoint covers gets ``CHAIN_BROKEN`` if its content or its chain is damaged."""
    ledger = receipt_issuer.ledger
    [*_, last] = await ledger.records(PLATFORM)
    edit = (last.canonical.replace(b"Update", b"Delete"), last.hash)
    ledger.tamper(lambda file: file.execute("UPDATE records SET canonical = ? WHERE hash = ?", edit))
    await append_events(ledger, PLATFORM, 1)
    for sequence, code in ((3, "CHAIN_BROKEN"), (4, "RECEIPT_NOT_READY"), (9, "RECORD_NOT_FOUND")):
        with pytest.raises(WorkspaceError) as raised:
            await receipt_issuer.receipts.issue_inclusion_receipt(PLATFORM, sequence, None)
        assert raised.value.code == code
    verifier = ChainVerifier(ledger.store, get_workspace_id, receipt_issuer.checkpoints, receipt_issuer.overview)
    assert not (await verifier.verify(PLATFORM)).chain_valid
    with pytest.raises(WorkspaceError) as raised:
        await receipt_issuer.receipts.issue_inclusion_receipt(PLATFORM, 4, None)
    assert (raised.value.code, "retryAfter" in raised.value.members) == ("CHAIN_BROKEN", False)


async def test_the_checkpoint_of_a_broken_chain_is_neither_verified_nor_signed(receipt_issuer: Issuer) -> None:
    """A broken chain gets ``CHAIN_BROKEN`` even if its checkpoint is damaged, and missing signatures are not made."""
    ledger = receipt_issuer.ledger
    record = (await ledger.records(BATCH))[8]
    edit = (record.canonical.replace(b"Update", b"Delete"), record.hash)
    ledger.tamper(lambda file: file.execute("UPDATE records SET canonical = ? WHERE hash = ?", edit))
    for file in receipt_issuer.find_signatures():
        file.unlink()
    receipts, signature_count = receipt_issuer.restart(), receipt_issuer.signer.count
    await check_error("CHAIN_BROKEN", receipts, 9)
    verifier = ChainVerifier(ledger.store, get_workspace_id, receipt_issuer.checkpoints, receipt_issuer.overview)
    assert not (await verifier.verify(BATCH)).chain_valid
    for name in (build_checkpoint_name(BATCH, 5), build_checkpoint_name(BATCH, 13)):
        await check_error("CHAIN_BROKEN", receipts, 1)
        with pytest.raises(WorkspaceError) as raised:
            await receipts.issue_growth_receipt(BATCH, 5, 13)
        assert raised.value.code == "CHAIN_BROKEN"
        [checkpoint] = (ledger.folder / "checkpoints").rglob(f"{name.rpartition('/')[2]}*")
        checkpoint.chmod(0o644)
        checkpoint.write_bytes(b"damaged")
    await check_error("CHAIN_BROKEN", receipts, 1)
    assert receipt_issuer.signer.count == signature_count
    assert receipt_issuer.find_signatures() == []


@pytest.mark.parametrize("forged", ["0" * 64, "not hex"])
async def test_a_chain_with_a_changed_hash_gets_no_receipts(receipt_issuer: Issuer, forged: str) -> None:
    """If a stored hash was changed, the proof does not give the signed root, and no receipt is issued."""
    record = (await receipt_issuer.ledger.records(BATCH))[1]
    receipt_issuer.ledger.tamper(
        lambda file: file.execute("UPDATE records SET hash = ? WHERE hash = ?", (forged, record.hash))
    )
    receipts = receipt_issuer.restart()
    await check_error("CHAIN_BROKEN", receipts, 1)
    with pytest.raises(WorkspaceError) as raised:
        await receipts.issue_growth_receipt(BATCH, 5, 13)
    assert raised.value.code == "CHAIN_BROKEN"


async def test_receipts_are_issued_after_a_damaged_hash_is_repaired(
    receipt_issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subtree roots that were cached while a stored Hash was damaged prevent receipts for a minute after its repair."""
    for module in (chain_trees, inclusion_proofs):
        monkeypatch.setattr(module, "SUBTREE_LEAVES", 4)
    records = await receipt_issuer.ledger.records(BATCH)
    edit = "UPDATE records SET hash = ? WHERE append_id = ?"
    store, seconds = receipt_issuer.ledger.store, 0.0
    runtime = Runtime(monotonic=lambda: seconds)
    checkpoints = Checkpoints(
        store, receipt_issuer.notes, receipt_issuer.signer, get_workspace_id, issuer=ISSUER, runtime=runtime
    )
    receipts = Receipts(store, checkpoints, Proofs(store, checkpoints.trees), receipt_issuer.overview)

    async def damage_and_repair_hash() -> None:
        nonlocal seconds
        receipt_issuer.ledger.tamper(lambda file: file.execute(edit, ("0" * 64, records[1].append_id)))
        checkpoints.trees.forget_cached_roots(BATCH)
        await check_error("CHAIN_BROKEN", receipts, 13)
        receipt_issuer.ledger.tamper(lambda file: file.execute(edit, (records[1].hash, records[1].append_id)))
        await check_error("CHAIN_BROKEN", receipts, 13)
        seconds += 60

    await damage_and_repair_hash()
    assert await receipts.issue_inclusion_receipt(BATCH, 13, None)
    await damage_and_repair_hash()
    assert await receipts.issue_growth_receipt(BATCH, 5, None)
    await damage_and_repair_hash()
    assert len(await receipts.issue_receipts_by_record_id(BATCH, records)) == 13


async def test_a_rotation_keeps_the_signatures_of_receipts(receipt_issuer: Issuer) -> None:
    """After a rotation, receipts of earlier checkpoints keep their signature; new checkpoints use the new key."""
    old = await receipt_issuer.checkpoints.load_verifier_key()
    before = await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, 1, 13)
    rotate_checkpoint_key(receipt_issuer.ledger.folder / "checkpoint-key.pem")
    new = await receipt_issuer.checkpoints.load_verifier_key()
    assert new.key_id != old.key_id
    assert await receipt_issuer.restart().issue_inclusion_receipt(BATCH, 1, 13) == before
    await receipt_issuer.ledger.fill(BATCH, 1)
    await receipt_issuer.checkpoints.create_if_grown(BATCH)
    after = await receipt_issuer.restart().issue_inclusion_receipt(BATCH, 1, None)
    assert RootSignature(cbor2.loads(after).value[0], b"").read_key_id() == new.key_id
    assert await receipt_issuer.checkpoints.keys.load_trusted_keys() == [new, old]


async def test_an_untrusted_key_prevents_receipts(receipt_issuer: Issuer) -> None:
    """If a retired key is no longer trusted, no receipts are issued for the checkpoints that it signed."""
    folder = receipt_issuer.ledger.folder
    rotate_checkpoint_key(folder / "checkpoint-key.pem")
    await receipt_issuer.checkpoints.load_verifier_key()
    for file in (folder / "checkpoint-keys").glob("*.pem"):
        file.unlink()
    receipt_issuer.signer = CountingSigner(folder / "checkpoint-key.pem", folder / "checkpoints")
    receipt_issuer.checkpoints = Checkpoints(
        receipt_issuer.ledger.store, receipt_issuer.notes, receipt_issuer.signer, get_workspace_id, issuer=ISSUER
    )
    await check_error("CHECKPOINT_REFUSED", receipt_issuer.restart(), 1)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"\x01", b"\xd2\x80", b"\xd2\x84\x40\xa0\xf6\x40", b"longer", b"root"]
)
async def test_a_damaged_signature_prevents_receipts(receipt_issuer: Issuer, content: bytes) -> None:
    """A stored signature is not used if it is damaged or belongs to another checkpoint."""
    name = build_checkpoint_name(BATCH, 13)
    file, other = (next(one for one in receipt_issuer.find_signatures() if int(one.stem) == size) for size in (13, 5))
    content = {b"longer": file.read_bytes() + b"\0", b"root": other.read_bytes()}.get(content, content)
    file.chmod(0o644)
    file.write_bytes(content)
    assert (await receipt_issuer.notes.find_checkpoint(f"{name}.cose")) is not None
    await check_error("CHECKPOINT_REFUSED", receipt_issuer.restart(), 1)


async def test_receipts_of_a_page_equal_single_receipts(receipt_issuer: Issuer) -> None:
    """The receipts for a page of records equal those that are requested one by one."""
    records = await receipt_issuer.ledger.records(BATCH)
    found = await receipt_issuer.receipts.issue_receipts_by_record_id(BATCH, records[3:6])
    assert found == {
        f"{record.sequence:012d}": await receipt_issuer.receipts.issue_inclusion_receipt(BATCH, record.sequence, None)
        for record in records[3:6]
    }
    platform = await receipt_issuer.ledger.records(PLATFORM)
    assert list(await receipt_issuer.receipts.issue_receipts_by_record_id(PLATFORM, platform)) == [
        "000000000001",
        "000000000002",
    ]
    assert await receipt_issuer.receipts.issue_receipts_by_record_id(PLATFORM, platform[2:]) == {}
    assert await receipt_issuer.receipts.issue_receipts_by_record_id(ChainKey(Target.DOMAIN_EVENTS, "never"), []) == {}


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE records SET canonical = canonical || ' ' WHERE hash = ?",
        "UPDATE records SET hash = 'not hex' WHERE hash = ?",
        "DELETE FROM records WHERE hash = ?",
    ],
)
async def test_a_page_of_a_damaged_chain_has_no_receipts(receipt_issuer: Issuer, edit: str) -> None:
    """If a record on a page of records was changed or deleted, the page is returned without receipts."""
    record = (await receipt_issuer.ledger.records(BATCH))[-1]
    receipt_issuer.ledger.tamper(lambda file: file.execute(edit, (record.hash,)))
    records = await receipt_issuer.ledger.records(BATCH)
    assert await receipt_issuer.restart().issue_receipts_by_record_id(BATCH, records) == {}
