"""Tests of the rotation of the checkpoint key: chains stay valid, and a lost key is not silently replaced."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from local import checkpoint_key
from shared.backends.azure.key_vault import Vault
from shared.backends.azure.vault_keys import VaultNoteSigner
from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.key_files import FileNoteSigner, rotate_checkpoint_key
from shared.errors import Kind, WorkspaceError
from shared.provenance.checkpoint_ports import NoteSigner
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.notes import NoteError, VerifierKey, build_checkpoint_origin, verify_and_parse_checkpoint
from shared.provenance.verifier import ChainVerifier
from tests.key_vault import KeyVaultDouble, Tokens
from tests.unit.shared.provenance.chains import BATCH, PLATFORM, WORKSPACE, Ledger, get_workspace_id, open_ledger

START = 1_767_600_000


@dataclass
class RotatableKey:
    """Key for signing checkpoints, in a file or a key vault, that the test can replace.

    Attributes:
        old: signer of a process that was started before the rotation.
        replace: rotates the key, and returns the signer of a process that is started afterwards.
    """

    old: NoteSigner
    replace: Callable[[], NoteSigner]


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide a file with two chains."""
    async with open_ledger(tmp_path) as opened:
        await opened.fill(PLATFORM, 3)
        await opened.fill(BATCH, 3)
        yield opened


@pytest.fixture(params=["file", "key vault double"])
async def rotatable_key(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RotatableKey]:
    """Provide a checkpoint key that can be replaced, once in a file and once in the Key Vault emulator."""
    async with AsyncExitStack() as stack:
        if request.param == "file":
            path, notes = tmp_path / "checkpoint-key.pem", tmp_path / "checkpoints"

            def replace_key() -> NoteSigner:
                rotate_checkpoint_key(path)
                return FileNoteSigner(path, notes)

            yield RotatableKey(FileNoteSigner(path, notes), replace_key)
            return
        double = stack.enter_context(KeyVaultDouble())
        double.keys.create_version("notes", START)
        vault = Vault(double.uri, credential=Tokens(), options=double.options)
        stack.push_async_callback(vault.close)
        yield RotatableKey(
            VaultNoteSigner(vault, "notes"),
            lambda: VaultNoteSigner(vault, f"notes/{double.keys.create_version('notes', START + 9).name}"),
        )


def open_checkpoints(ledger: Ledger, signer: NoteSigner) -> Checkpoints:
    """Return the checkpoint service of a process with the given signer."""
    return Checkpoints(ledger.store, FileCheckpointStore(ledger.folder / "checkpoints"), signer, get_workspace_id)


async def reports_valid_chains(ledger: Ledger, checkpoints: Checkpoints) -> bool:
    """Return whether a process with the given checkpoint service reports both chains and their checkpoints as valid."""
    verifier = ChainVerifier(ledger.store, get_workspace_id, checkpoints)
    return all([(await verifier.verify(chain)).chain_valid for chain in (PLATFORM, BATCH)])


async def test_a_replaced_key_is_trusted_but_does_not_sign(ledger: Ledger, rotatable_key: RotatableKey) -> None:
    """After a rotation, signatures of the old key stay trusted, and all processes sign with the new key."""
    before = open_checkpoints(ledger, rotatable_key.old)
    assert await before.create_all_and_count_them() == 2
    old = await before.load_verifier_key()
    after = open_checkpoints(ledger, rotatable_key.replace())
    new = await after.load_verifier_key()
    assert new != old
    for checkpoints in (after, before):
        assert await reports_valid_chains(ledger, checkpoints)
        assert (await checkpoints.load_newest_verified(BATCH)).checkpoint.size == 3
    # Either key verifies earlier notes.
    given = (await after.load_newest_verified(BATCH)).stored.note
    for key in (old, new):
        assert verify_and_parse_checkpoint(given, key, build_checkpoint_origin(WORKSPACE, *BATCH)).size == 3
    await ledger.fill(BATCH, 2)
    made = await after.create_if_grown(BATCH)
    assert made is not None
    origin = build_checkpoint_origin(WORKSPACE, *BATCH)
    assert verify_and_parse_checkpoint(made.note, new, origin).size == 5
    with pytest.raises(NoteError):
        verify_and_parse_checkpoint(made.note, old, origin)
    # Checkpoints of an older process are trusted, too.
    for checkpoints in (before, after):
        assert await reports_valid_chains(ledger, checkpoints)
        await ledger.fill(BATCH, 1)
        made = await checkpoints.create_if_grown(BATCH)
        assert made == (await checkpoints.load_newest_verified(BATCH)).stored
    assert await reports_valid_chains(ledger, before)
    assert await reports_valid_chains(ledger, after)
    assert VerifierKey.parse(str(new)) == new


async def test_a_manually_replaced_key_file_signs(ledger: Ledger, tmp_path: Path) -> None:
    """If an operator replaces the key file, the new key is used at once, and the old key stays trusted."""
    assert await ledger.checkpoints.create_all_and_count_them() == 2
    async with open_ledger(tmp_path / "elsewhere") as other:
        await other.checkpoints.load_verifier_key()
    shutil.copy(tmp_path / "elsewhere" / "checkpoint-key.pem", tmp_path / "checkpoint-key.pem")
    assert await ledger.checkpoints.load_verifier_key() == await other.checkpoints.load_verifier_key()
    assert await reports_valid_chains(ledger, ledger.checkpoints)
    await ledger.fill(BATCH, 1)
    assert await ledger.checkpoints.create_if_grown(BATCH) is not None
    assert await reports_valid_chains(ledger, ledger.checkpoints)


@pytest.mark.parametrize("left", ["nothing", "rubbish"])
async def test_a_lost_checkpoint_key_is_not_replaced(ledger: Ledger, tmp_path: Path, left: str) -> None:
    """If the signing key is lost, no checkpoint is signed, and existing checkpoints can be verified."""
    assert await ledger.checkpoints.create_all_and_count_them() == 2
    path, aside = tmp_path / "checkpoint-key.pem", tmp_path / "aside"
    path.rename(aside)
    if left == "rubbish":
        path.write_text("rubbish")
    await ledger.fill(BATCH, 1)
    for checkpoints in (ledger.checkpoints, open_checkpoints(ledger, FileNoteSigner(path, tmp_path / "checkpoints"))):
        for refused in (checkpoints.create_if_grown(BATCH), checkpoints.load_verifier_key()):
            with pytest.raises(WorkspaceError) as caught:
                await refused
            assert caught.value.code == "CHECKPOINT_REFUSED"
        assert await checkpoints.create_all_and_count_them() == 0
        assert await reports_valid_chains(ledger, checkpoints)
        assert (await checkpoints.load_newest_verified(BATCH)).checkpoint.size == 3
        assert path.exists() == (left == "rubbish")
    aside.rename(path)
    assert await ledger.checkpoints.create_if_grown(BATCH) is not None
    assert await reports_valid_chains(ledger, ledger.checkpoints)


async def test_verification_fails_without_a_trusted_key(ledger: Ledger, tmp_path: Path) -> None:
    """Without a trusted key, verification raises an error, because the chain may have been rewritten."""
    assert await ledger.checkpoints.create_if_grown(BATCH) is not None
    (tmp_path / "checkpoint-key.pem").unlink()
    shutil.rmtree(tmp_path / "checkpoint-keys")
    with pytest.raises(WorkspaceError) as caught:
        await ledger.verify(BATCH)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    assert (await ledger.verify(PLATFORM)).chain_valid


async def test_a_missing_key_without_checkpoints_is_created_again(ledger: Ledger, tmp_path: Path) -> None:
    """If there is no checkpoint yet, a missing signing key is created again."""
    first = await ledger.checkpoints.load_verifier_key()
    (tmp_path / "checkpoint-key.pem").unlink()
    assert await ledger.checkpoints.load_verifier_key() != first


async def test_signatures_of_a_disabled_key_are_not_trusted(ledger: Ledger) -> None:
    """Signatures of a disabled key are not trusted, and the verification result says so."""
    with KeyVaultDouble() as double:
        leaked = double.keys.create_version("notes", START)
        vault = Vault(double.uri, credential=Tokens(), options=double.options)
        await open_checkpoints(ledger, VaultNoteSigner(vault, "notes")).create_if_grown(BATCH)
        leaked.enabled = False
        double.keys.create_version("notes", START + 9)
        after = open_checkpoints(ledger, VaultNoteSigner(vault, "notes"))
        verdict = await ChainVerifier(ledger.store, get_workspace_id, after).verify(BATCH)
        assert (verdict.chain_valid, "is not trusted" in verdict.reason) == (False, True)
        # While the vault is unavailable, the set of trusted keys is unknown.
        double.down = True
        with pytest.raises(WorkspaceError) as caught:
            await ChainVerifier(ledger.store, get_workspace_id, after).verify(BATCH)
        assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"
        await vault.close()


class UnavailableSigner(FileNoteSigner):
    """Fake signer that returns its public keys but cannot sign."""

    async def sign(self, message: bytes) -> bytes:
        """Raise the error of a key that cannot be reached."""
        raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", f"{len(message)} bytes cannot be signed.")


async def test_a_required_signature_of_an_unreachable_key_is_unavailable(ledger: Ledger, tmp_path: Path) -> None:
    """If the current key cannot be reached, its additional signature is missing, or raises an error if required."""
    stored = await ledger.checkpoints.create_if_grown(BATCH)
    assert stored is not None
    rotate_checkpoint_key(tmp_path / "checkpoint-key.pem")
    signer = UnavailableSigner(tmp_path / "checkpoint-key.pem", tmp_path / "checkpoints")
    checkpoints = open_checkpoints(ledger, signer)
    assert (await checkpoints.load_newest_verified(BATCH)).stored.note == stored.note
    with pytest.raises(WorkspaceError) as caught:
        await checkpoints.load_newest_verified(BATCH, is_current_signature_required=True)
    assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"


class RotatingSigner(FileNoteSigner):
    """Fake signer whose key is replaced after its public key was read and before it signs."""

    async def sign(self, message: bytes) -> bytes:
        """Sign with the next key."""
        rotate_checkpoint_key(self._path)
        return await super().sign(message)


async def test_a_required_signature_of_a_key_that_is_replaced_is_unavailable(ledger: Ledger, tmp_path: Path) -> None:
    """If the key is replaced during signing, its additional signature is missing, or raises an error if required."""
    stored = await ledger.checkpoints.create_if_grown(BATCH)
    assert stored is not None
    rotate_checkpoint_key(tmp_path / "checkpoint-key.pem")
    turning = open_checkpoints(ledger, RotatingSigner(tmp_path / "checkpoint-key.pem", tmp_path / "checkpoints"))
    assert (await turning.load_newest_verified(BATCH)).stored.note == stored.note
    with pytest.raises(WorkspaceError) as caught:
        await turning.load_newest_verified(BATCH, is_current_signature_required=True)
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE")


async def test_a_note_with_an_invalid_signature_is_not_stored(ledger: Ledger, tmp_path: Path) -> None:
    """A new checkpoint whose signature does not match its key is not stored, because it could not be replaced."""
    turning = open_checkpoints(ledger, RotatingSigner(tmp_path / "checkpoint-key.pem", tmp_path / "checkpoints"))
    with pytest.raises(WorkspaceError) as caught:
        await turning.create_if_grown(BATCH)
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE")
    assert await ledger.checkpoints.find_newest(BATCH) is None
    assert await ledger.checkpoints.create_if_grown(BATCH) is not None


def _list_signatures_for_receipts(folder: Path) -> list[Path]:
    return list(folder.rglob("*.cose"))


async def test_a_signature_for_receipts_of_a_replaced_key_is_not_stored(ledger: Ledger, tmp_path: Path) -> None:
    """If the key is replaced while a Merkle root is signed, nothing is stored, and a retry succeeds."""
    stored = await ledger.checkpoints.create_if_grown(BATCH)
    assert stored is not None
    checkpoint = await ledger.checkpoints.verify_and_parse_checkpoint(BATCH, stored)
    (signature,) = _list_signatures_for_receipts(tmp_path)
    signature.unlink()
    turning = open_checkpoints(ledger, RotatingSigner(tmp_path / "checkpoint-key.pem", tmp_path / "checkpoints"))
    with pytest.raises(WorkspaceError) as caught:
        await turning.signatures.load_or_create(stored.name, checkpoint)
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE")
    assert not _list_signatures_for_receipts(tmp_path)
    await ledger.checkpoints.signatures.load_or_create(stored.name, checkpoint)


async def test_a_command_replaces_the_checkpoint_key(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command replaces the key and prints the new public key; without a valid key or data, it changes nothing."""
    assert await ledger.checkpoints.create_all_and_count_them() == 2
    old = await ledger.checkpoints.load_verifier_key()
    assert checkpoint_key.main(["rotate", "--data-dir", str(tmp_path)]) == 0
    new = await ledger.checkpoints.load_verifier_key()
    assert new != old
    assert (tmp_path / "checkpoint-key.pem").stat().st_mode & 0o777 == 0o600
    assert f"checkpoint-keys/{new.key_id.hex()}" in capsys.readouterr().out
    assert await reports_valid_chains(ledger, ledger.checkpoints)
    assert checkpoint_key.main(["rotate", "--data-dir", str(tmp_path / "nowhere")]) == 1
    (tmp_path / "checkpoint-key.pem").write_text("rubbish")
    assert checkpoint_key.main(["rotate", "--data-dir", str(tmp_path)]) == 1
    assert (tmp_path / "checkpoint-key.pem").read_text() == "rubbish"


async def test_roots_signed_with_a_retired_key_are_trusted(ledger: Ledger, rotatable_key: RotatableKey) -> None:
    """After a rotation, all processes verify roots of both keys and publish both keys."""
    before = open_checkpoints(ledger, rotatable_key.old)
    old = await before.load_verifier_key()
    found = {}
    for size in (3, 4):
        stored = await before.create_if_grown(BATCH)
        assert stored is not None
        checkpoint = await before.verify_and_parse_checkpoint(BATCH, stored)
        found[size] = (await before.signatures.load_or_create(stored.name, checkpoint), checkpoint)
        if size == 3:
            before = open_checkpoints(ledger, rotatable_key.replace())
            await ledger.fill(BATCH, 1)
    new = await before.load_verifier_key()
    assert [signature.read_key_id() for signature, _ in found.values()] == [old.key_id, new.key_id]
    for checkpoints in (before, open_checkpoints(ledger, rotatable_key.old)):
        # A process that has cached the keys reads them again when it finds an unknown one.
        for signature, checkpoint in found.values():
            await checkpoints.keys.verify_root(signature, checkpoint)
        assert {key.key_id for key in await checkpoints.keys.load_trusted_keys()} == {old.key_id, new.key_id}
    with pytest.raises(NoteError, match="root"):
        await before.keys.verify_root(found[3][0], found[4][1])
