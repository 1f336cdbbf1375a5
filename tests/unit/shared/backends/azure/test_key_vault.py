"""Keys in Key Vault: the genuine SDK against a test double at the wire."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ResourceNotFoundError
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.auth import tokens as tokens_module
from shared.auth.jose import compute_thumbprint
from shared.auth.ports import MAX_MINUTES
from shared.auth.tokens import Claims, TokenCodec
from shared.backends.azure import vault_keys
from shared.backends.azure.key_vault import Vault
from shared.backends.azure.vault_keys import SETTLING, VaultNoteSigner, VaultSigningKey
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now
from tests.key_vault import KeyVaultDouble, Tokens
from tests.key_vault.keys import Version

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
LONGEST = timedelta(minutes=MAX_MINUTES)


@pytest.fixture
def double() -> Iterator[KeyVaultDouble]:
    """An empty vault."""
    with KeyVaultDouble() as running:
        yield running


@pytest.fixture
def tokens() -> Tokens:
    """The credential that the vault takes."""
    return Tokens()


@pytest.fixture
async def vault(double: KeyVaultDouble, tokens: Tokens) -> AsyncIterator[Vault]:
    """A client of the vault."""
    opened = Vault(double.uri, credential=tokens, options=double.options)
    yield opened
    await opened.close()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are read anew each time."""
    monkeypatch.setattr(vault_keys, "FRESH_SECONDS", -1.0)


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


def key_id(version: Version) -> str:
    return compute_thumbprint(version.private.public_key())


async def published(key: VaultSigningKey) -> list[str]:
    return [str(each["kid"]) for each in await key.public_keys()]


async def test_the_vault_is_asked_with_a_token_for_it(double: KeyVaultDouble, vault: Vault, tokens: Tokens) -> None:
    """The challenge names what the token must be for; keys are read once, only signatures go there again."""
    double.keys.create("tokens")
    key = VaultSigningKey(vault, "tokens")
    await key.sign(b"one")
    asked = len(double.requests)
    assert set(tokens.scopes) == {"https://vault.azure.net/.default"}
    await key.sign(b"two")
    await key.key_id()
    await key.public_keys()
    assert [path.rsplit("/", 1)[-1] for path in double.requests[asked:]] == ["sign"]


@pytest.mark.usefixtures("at_once")
async def test_versions_take_turns(double: KeyVaultDouble, vault: Vault) -> None:
    """A new version is published at once and signs an hour later; the old one is published until its tokens ended."""
    clock = Clock()
    key = VaultSigningKey(vault, "tokens", clock=clock)
    first = double.keys.create("tokens", START.timestamp())
    assert await published(key) == [key_id(first)]
    clock.now = START + timedelta(days=90)
    second = double.keys.create("tokens", clock.now.timestamp())
    assert (await key.key_id(), await published(key)) == (key_id(first), [key_id(first), key_id(second)])
    clock.now += SETTLING
    assert (await key.key_id(), await published(key)) == (key_id(second), [key_id(second), key_id(first)])
    clock.now += LONGEST
    assert await published(key) == [key_id(second), key_id(first)]
    clock.now += timedelta(hours=2)
    assert await published(key) == [key_id(second)]


@pytest.mark.usefixtures("at_once")
async def test_a_disabled_version_is_out(double: KeyVaultDouble, vault: Vault) -> None:
    """What an operator disables neither signs nor verifies; with nothing left tokens cannot be signed."""
    clock = Clock()
    key = VaultSigningKey(vault, "tokens", clock=clock)
    old, new = double.keys.create("tokens", START.timestamp()), double.keys.create("tokens", START.timestamp() + 9_000)
    clock.now = START + timedelta(days=1)
    assert await published(key) == [key_id(new), key_id(old)]
    new.enabled = False
    assert (await key.key_id(), await published(key)) == (key_id(old), [key_id(old)])
    old.enabled = False
    with pytest.raises(WorkspaceError) as caught:
        await VaultSigningKey(vault, "tokens", clock=clock).key_id()
    assert caught.value.code == "SIGNING_KEY_UNAVAILABLE"


@pytest.mark.usefixtures("at_once")
async def test_tokens_end_with_their_version(
    double: KeyVaultDouble, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that knows a public key forgets it when the version is disabled: its tokens are refused."""
    monkeypatch.setattr(tokens_module, "FRESH_SECONDS", -1.0)
    version = double.keys.create("tokens", START.timestamp())
    codec = TokenCodec(VaultSigningKey(vault, "tokens"), "issuer", "audience")
    at = now()
    claims = Claims("id", "editor", "editor", "plant-a", frozenset(), at.replace(microsecond=0) + timedelta(hours=1))
    token = await codec.sign(claims, at)
    assert await codec.verify(token) == claims
    double.keys.create("tokens", at.timestamp())
    assert await codec.verify(token) == claims
    version.enabled = False
    with pytest.raises(WorkspaceError) as caught:
        await codec.verify(token)
    assert caught.value.kind is Kind.UNAUTHENTICATED


async def test_the_signature_is_of_the_version_that_was_named(double: KeyVaultDouble, vault: Vault) -> None:
    """A token whose header names a version is signed by it, though the next one's turn has come in between."""
    clock = Clock()
    double.keys.create("tokens", START.timestamp() - 10_000)
    double.keys.create("tokens", START.timestamp())
    key = VaultSigningKey(vault, "tokens", clock=clock)
    named = await key.key_id()
    clock.now += SETTLING
    await key.sign(b"message")
    version = double.requests[-1].split("/")[3]
    found = double.keys.find("tokens", version)
    assert found is not None
    assert key_id(found) == named
    assert await key.key_id() != named


@pytest.mark.usefixtures("at_once")
async def test_an_outage_stops_signing_and_no_verifying(double: KeyVaultDouble, vault: Vault) -> None:
    """While the vault is away the known public keys are given; nothing can be signed, and a new process has none."""
    double.keys.create("tokens")
    key = VaultSigningKey(vault, "tokens")
    before = await published(key)
    double.down = True
    assert await published(key) == before
    failures = [key.sign(b""), VaultSigningKey(vault, "tokens").public_keys()]
    for failing in failures:
        with pytest.raises(WorkspaceError) as caught:
            await failing
        assert caught.value.code == "SIGNING_KEY_UNAVAILABLE"
    with pytest.raises(WorkspaceError) as caught:
        await VaultNoteSigner(vault, "notes").public_key()
    assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"


async def test_the_checkpoint_key_stays(double: KeyVaultDouble, vault: Vault) -> None:
    """Without a version it is the first one, whatever came after; a named version is that one, or none."""
    first = double.keys.create("notes", START.timestamp())
    second = double.keys.create("notes", START.timestamp() + 1)
    spki = [
        each.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        for each in (first, second)
    ]
    assert await VaultNoteSigner(vault, "notes").public_key() == spki[0]
    assert await VaultNoteSigner(vault, f"notes/{second.name}").public_key() == spki[1]
    with pytest.raises(WorkspaceError) as caught:
        await VaultNoteSigner(vault, "notes/none").public_key()
    assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"


async def test_a_missing_key_is_unavailable(vault: Vault) -> None:
    """What the deployment forgot to make is told as an outage, and its check fails."""
    with pytest.raises(WorkspaceError):
        await VaultSigningKey(vault, "never-made").key_id()
    with pytest.raises(ResourceNotFoundError):
        await vault.check("never-made")
    await vault.close()
    await vault.close()
