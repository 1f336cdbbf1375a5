"""Tests that all adapters for signing keys of tokens and checkpoints meet the same contract."""

import os
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.identity.aio import DefaultAzureCredential
from azure.keyvault.keys.aio import KeyClient
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from shared.auth.jose import to_jwk
from shared.auth.ports import SigningKey
from shared.backends.azure.key_vault import Vault
from shared.backends.azure.vault_keys import VaultNoteSigner, VaultSigningKey
from shared.backends.embedded.key_files import FileNoteSigner, FileSigningKey
from shared.provenance.checkpoint_ports import NoteSigner
from tests.key_vault import KeyVaultDouble, Tokens

FILE, DOUBLE, ENDPOINT = "file", "key vault double", "key vault"
KINDS = [FILE, DOUBLE, *([ENDPOINT] if os.environ.get("KEY_VAULT_URI") else [])]


@dataclass
class SigningKeys:
    """Two adapters: for the keys that sign tokens, and for the keys that sign checkpoints."""

    tokens: SigningKey
    notes: NoteSigner


@pytest.fixture(params=KINDS)
async def keys(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SigningKeys]:
    """Yield signing keys of each kind; afterwards delete keys that were created in a real vault."""
    async with AsyncExitStack() as stack:
        if request.param == FILE:
            yield SigningKeys(
                FileSigningKey(tmp_path / "tokens.pem"),
                FileNoteSigner(tmp_path / "notes.pem", tmp_path / "checkpoints"),
            )
            return
        name = f"contract-{uuid.uuid4().hex}"
        if request.param == DOUBLE:
            double = stack.enter_context(KeyVaultDouble())
            double.keys.create_version(name)
            vault = Vault(double.uri, credential=Tokens(), options=double.options)
        else:
            credential = await stack.enter_async_context(DefaultAzureCredential())
            client = await stack.enter_async_context(KeyClient(os.environ["KEY_VAULT_URI"], credential))
            await client.create_ec_key(name, curve="P-256")
            stack.push_async_callback(client.delete_key, name)
            vault = Vault(os.environ["KEY_VAULT_URI"])
        stack.push_async_callback(vault.close)
        yield SigningKeys(VaultSigningKey(vault, name), VaultNoteSigner(vault, name))


def check_signature(public: ec.EllipticCurvePublicKey, signature: bytes, message: bytes) -> None:
    assert len(signature) == 64
    parts = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    public.verify(encode_dss_signature(*parts), message, ec.ECDSA(hashes.SHA256()))


def load_public_key_der(spki: bytes) -> ec.EllipticCurvePublicKey:
    key = serialization.load_der_public_key(spki)
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return key


async def test_token_signatures_verify_with_the_published_key(keys: SigningKeys) -> None:
    """A token's signature is valid for the published key with the returned id."""
    first, *_ = await keys.tokens.load_public_keys()
    assert first["kid"] == await keys.tokens.get_key_id()
    assert (first["kty"], first["crv"], first["alg"], first["use"]) == ("EC", "P-256", "ES256", "sig")
    assert "d" not in first
    if isinstance(keys.notes, VaultNoteSigner):
        # Both purposes use the same key of the vault here.
        public = load_public_key_der(await keys.notes.load_public_key_der())
        assert to_jwk(public) == first
        check_signature(public, await keys.tokens.sign(b"message"), b"message")


async def test_checkpoint_signatures_verify_with_the_published_key(keys: SigningKeys) -> None:
    """A checkpoint's signature is valid for the published key, which does not change."""
    spki = await keys.notes.load_public_key_der()
    for message in (b"", b"note", bytes(range(256)) * 100):
        check_signature(load_public_key_der(spki), await keys.notes.sign(message), message)
    assert await keys.notes.load_public_key_der() == spki
