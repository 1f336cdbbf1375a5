"""Tests of keys and secrets in files."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from shared.backends.embedded.key_files import (
    FileNoteSigner,
    FileSecret,
    FileSigningKey,
    create_private_key_file_if_missing,
    load_or_create_secret,
    load_private_key,
    rotate_checkpoint_key,
)
from shared.errors import Kind, WorkspaceError


async def test_a_secret_file_is_created_once(tmp_path: Path) -> None:
    """A secret is created once, in a file that only its owner can read; another process reads the same secret."""
    path = tmp_path / "a" / "secret"
    path.parent.mkdir()
    secret = await FileSecret(path, "CODE")()
    assert len(secret) == 32
    assert load_or_create_secret(path) == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_an_unreadable_secret_is_reported(tmp_path: Path) -> None:
    """If the file of a secret cannot be read, the error has the code of the secret's user."""
    with pytest.raises(WorkspaceError) as caught:
        await FileSecret(tmp_path, "CODE")()  # a folder cannot be read as a file
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CODE")


@pytest.mark.parametrize("size", [0, 31])
async def test_an_incomplete_secret_is_rejected(tmp_path: Path, size: int) -> None:
    """A file with less than the 32 bytes of a secret is rejected and not replaced, because it could be restored."""
    path = tmp_path / "secret"
    path.write_bytes(b"x" * size)
    with pytest.raises(OSError, match="at least 32 bytes"):
        load_or_create_secret(path)
    with pytest.raises(WorkspaceError, match="restore the file"):
        await FileSecret(path, "CODE")()
    assert path.read_bytes() == b"x" * size


async def test_two_signers_use_one_key(tmp_path: Path) -> None:
    """Two signers in one folder use the same key, whose file is created by the first signer."""
    first, second = (FileSigningKey(tmp_path / "key.pem") for _ in range(2))
    assert await first.get_key_id() == await second.get_key_id()
    assert len(await first.sign(b"message")) == 64


@pytest.mark.parametrize("content", [b"", b"not a key"])
def test_a_file_without_a_key_is_rejected(tmp_path: Path, content: bytes) -> None:
    """A file without a valid key is rejected and not replaced, because old signatures could then never be verified."""
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"key\.pem"):
        load_private_key(path)
    assert path.read_bytes() == content


def test_a_key_on_a_curve_other_than_p_256_is_rejected(tmp_path: Path) -> None:
    """A key on another curve than P-256 is rejected, because ES256 requires P-256."""
    other = ec.generate_private_key(ec.SECP384R1())
    path = tmp_path / "key.pem"
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(ValueError, match="P-256"):
        load_private_key(path)


@pytest.mark.parametrize("content", [b"not a key", None])
async def test_an_unusable_token_key_is_reported(tmp_path: Path, content: bytes | None) -> None:
    """If the token key's file is damaged or cannot be read, each method reports that the key is unavailable."""
    path = tmp_path / "key.pem"
    if content is None:
        path.mkdir()  # cannot be read by any user, unlike a file without permissions
    else:
        path.write_bytes(content)
    key = FileSigningKey(path)
    for call in (key.get_key_id, key.load_public_keys, lambda: key.sign(b"message")):
        with pytest.raises(WorkspaceError) as caught:
            await call()
        assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "SIGNING_KEY_UNAVAILABLE")


async def test_an_unreadable_checkpoint_key_prevents_only_signing(tmp_path: Path) -> None:
    """If the checkpoint key's file cannot be read, signing is unavailable, and earlier signatures stay trusted."""
    path = tmp_path / "key.pem"
    signer = FileNoteSigner(path, tmp_path / "checkpoints")
    old = await signer.load_public_key_der()
    path.unlink()
    path.mkdir()
    for call in (signer.load_public_key_der, lambda: signer.sign(b"message")):
        with pytest.raises(WorkspaceError) as caught:
            await call()
        assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE")
    assert await signer.load_trusted_keys_der() == [old]


async def test_a_lost_checkpoint_key_is_not_replaced_silently(tmp_path: Path) -> None:
    """If checkpoints exist but their key is missing, signing fails, because a new key would make them untrusted."""
    notes = tmp_path / "checkpoints"
    notes.mkdir()
    (notes / "1").write_text("a checkpoint", encoding="utf-8")
    with pytest.raises(WorkspaceError):
        await FileNoteSigner(tmp_path / "key.pem", notes).sign(b"message")
    assert not (tmp_path / "key.pem").exists()


async def test_keys_before_a_rotation_stay_trusted(tmp_path: Path) -> None:
    """After a rotation, a running process signs with the new key, and signatures of older keys stay trusted."""
    path = tmp_path / "key.pem"
    create_private_key_file_if_missing(path)
    signer = FileNoteSigner(path, tmp_path / "checkpoints")
    await signer.sign(b"message")
    old = await signer.load_public_key_der()
    rotate_checkpoint_key(path)
    await signer.sign(b"message")
    new = await signer.load_public_key_der()
    assert new != old
    assert {old, new} <= set(await signer.load_trusted_keys_der())
