"""Tests of the secrets of webhook endpoints."""

from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from shared.errors import Kind, WorkspaceError
from shared.webhooks.secrets import SecretVault, build_signature_header


def _open_vault(material: bytes = b"k" * 32) -> SecretVault:
    async def load() -> bytes:
        return material

    return SecretVault(load)


def test_signatures_satisfy_the_official_library() -> None:
    """During a rotation, the official Standard Webhooks library accepts a request with either secret."""
    vault, body, now = _open_vault(), '{"a": "ü"}', int(datetime.now(UTC).timestamp())
    old, new = vault.create_secret(), vault.create_secret()
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": build_signature_header([new, old], "msg_1", now, body.encode()),
    }
    for secret in (old, new):
        assert Webhook(secret).verify(body, headers) == {"a": "ü"}


async def test_a_stored_secret_belongs_to_its_endpoint_and_key() -> None:
    """A secret can be decrypted only for its endpoint and with its key, and is not readable in the store."""
    vault = _open_vault()
    secret = vault.create_secret()
    stored = await vault.encrypt("one", secret)
    assert secret not in stored
    assert await _open_vault().decrypt("one", stored) == secret
    for other, endpoint in ((vault, "two"), (_open_vault(b"x" * 32), "one"), (_open_vault(b"short"), "one")):
        with pytest.raises(WorkspaceError) as failed:
            await other.decrypt(endpoint, stored)
        assert (failed.value.kind, failed.value.code) == (Kind.UNAVAILABLE, "WEBHOOK_KEY_UNAVAILABLE")
