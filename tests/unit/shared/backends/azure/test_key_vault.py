"""Tests of keys in Key Vault with the real SDK and an emulator."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.auth import tokens as tokens_module
from shared.auth.jose import compute_thumbprint
from shared.auth.ports import MAX_MINUTES
from shared.auth.tokens import Claims, TokenCodec
from shared.backends.azure import vault_keys
from shared.backends.azure.key_vault import KeyVersion, Vault
from shared.backends.azure.vault_keys import SETTLING, VaultNoteSigner, VaultSigningKey
from shared.backends.embedded.key_files import FileSigningKey
from shared.errors import Kind, WorkspaceError
from shared.runtime import Runtime
from shared.timestamps import now
from tests.key_vault import KeyVaultDouble, Tokens
from tests.key_vault.keys import Version
from tests.virtual_time import VirtualTime

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
LONGEST = timedelta(minutes=MAX_MINUTES)


@pytest.fixture
def emulator() -> Iterator[KeyVaultDouble]:
    """Provide a running emulator of an empty key vault."""
    with KeyVaultDouble() as running:
        yield running


@pytest.fixture
def tokens() -> Tokens:
    """Provide the credential that the emulator accepts."""
    return Tokens()


@pytest.fixture
async def vault_client(emulator: KeyVaultDouble, tokens: Tokens) -> AsyncIterator[Vault]:
    """Provide a client of the emulator."""
    opened = Vault(emulator.uri, credential=tokens, options=emulator.options)
    yield opened
    await opened.close()


@pytest.fixture
def uncached_key_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the client read the key versions at each call, and wait for them."""
    monkeypatch.setattr(vault_keys, "FRESH_SECONDS", -1.0)
    monkeypatch.setattr(vault_keys, "WAIT_SECONDS", 30.0)


class Clock:
    """Clock that the tests set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """Return the time that the test has set."""
        return self.now


def get_key_id(version: Version) -> str:
    return compute_thumbprint(version.private.public_key())


async def list_published_ids(key: VaultSigningKey) -> list[str]:
    return [str(each["kid"]) for each in await key.load_public_keys()]


async def test_requests_carry_the_token_that_the_vault_demands(
    emulator: KeyVaultDouble, vault_client: Vault, tokens: Tokens
) -> None:
    """Requests carry the token that the vault demands; keys are read once, but each signature is a request."""
    emulator.keys.create_version("tokens")
    key = VaultSigningKey(vault_client, "tokens")
    await key.sign(b"one")
    asked = len(emulator.requests)
    assert set(tokens.scopes) == {"https://vault.azure.net/.default"}
    await key.sign(b"two")
    await key.get_key_id()
    await key.load_public_keys()
    assert [path.rsplit("/", 1)[-1] for path in emulator.requests[asked:]] == ["sign"]


@pytest.mark.usefixtures("uncached_key_versions")
async def test_key_versions_rotate(emulator: KeyVaultDouble, vault_client: Vault) -> None:
    """A new key version is published at once and signs after an hour; the old one stays until its tokens expire."""
    clock = Clock()
    key = VaultSigningKey(vault_client, "tokens", runtime=Runtime(now=clock))
    first = emulator.keys.create_version("tokens", START.timestamp())
    assert await list_published_ids(key) == [get_key_id(first)]
    clock.now = START + timedelta(days=90)
    second = emulator.keys.create_version("tokens", clock.now.timestamp())
    assert (await key.get_key_id(), await list_published_ids(key)) == (
        get_key_id(first),
        [get_key_id(first), get_key_id(second)],
    )
    clock.now += SETTLING
    assert (await key.get_key_id(), await list_published_ids(key)) == (
        get_key_id(second),
        [get_key_id(second), get_key_id(first)],
    )
    clock.now += LONGEST
    assert await list_published_ids(key) == [get_key_id(second), get_key_id(first)]
    clock.now += timedelta(hours=2)
    assert await list_published_ids(key) == [get_key_id(second)]


@pytest.mark.usefixtures("uncached_key_versions")
async def test_a_key_version_signs_after_its_activation_date(emulator: KeyVaultDouble, vault_client: Vault) -> None:
    """A key version signs an hour after its activation date; until then, and for its tokens, the old one is kept."""
    clock = Clock()
    key = VaultSigningKey(vault_client, "tokens", runtime=Runtime(now=clock))
    old = emulator.keys.create_version("tokens", START.timestamp() - 10_000)
    new = emulator.keys.create_version("tokens", START.timestamp())
    new.not_before = int((START + timedelta(days=60)).timestamp())
    clock.now = START + timedelta(days=60)
    assert await list_published_ids(key) == [get_key_id(old), get_key_id(new)]
    clock.now += SETTLING
    assert await list_published_ids(key) == [get_key_id(new), get_key_id(old)]
    clock.now += LONGEST
    assert await list_published_ids(key) == [get_key_id(new), get_key_id(old)]
    clock.now += timedelta(hours=2)
    assert await list_published_ids(key) == [get_key_id(new)]


@pytest.mark.usefixtures("uncached_key_versions")
async def test_an_expired_key_version_does_not_sign(emulator: KeyVaultDouble, vault_client: Vault) -> None:
    """From the expiry date of a key version on, an earlier version signs, which is published an hour before."""
    clock = Clock()
    key = VaultSigningKey(vault_client, "tokens", runtime=Runtime(now=clock))
    old = emulator.keys.create_version("tokens", START.timestamp() - 10_000)
    new = emulator.keys.create_version("tokens", START.timestamp())
    new.expires = int((START + timedelta(days=60)).timestamp())
    clock.now = START + timedelta(days=59)
    assert await list_published_ids(key) == [get_key_id(new)]
    clock.now += timedelta(days=1) - SETTLING
    assert await list_published_ids(key) == [get_key_id(new), get_key_id(old)]
    clock.now += SETTLING
    assert await list_published_ids(key) == [get_key_id(old), get_key_id(new)]
    newest = emulator.keys.create_version("tokens", clock.now.timestamp())
    clock.now += SETTLING
    assert await list_published_ids(key) == [get_key_id(newest), get_key_id(old), get_key_id(new)]


@pytest.mark.usefixtures("uncached_key_versions")
async def test_a_disabled_key_version_neither_signs_nor_verifies(emulator: KeyVaultDouble, vault_client: Vault) -> None:
    """A disabled key version neither signs nor verifies; without an enabled version, no token can be signed."""
    clock = Clock()
    key = VaultSigningKey(vault_client, "tokens", runtime=Runtime(now=clock))
    old, new = (
        emulator.keys.create_version("tokens", START.timestamp()),
        emulator.keys.create_version("tokens", START.timestamp() + 9_000),
    )
    clock.now = START + timedelta(days=1)
    assert await list_published_ids(key) == [get_key_id(new), get_key_id(old)]
    new.enabled = False
    assert (await key.get_key_id(), await list_published_ids(key)) == (get_key_id(old), [get_key_id(old)])
    old.enabled = False
    with pytest.raises(WorkspaceError) as caught:
        await VaultSigningKey(vault_client, "tokens", runtime=Runtime(now=clock)).get_key_id()
    assert caught.value.code == "SIGNING_KEY_UNAVAILABLE"


@pytest.mark.usefixtures("uncached_key_versions")
async def test_tokens_of_a_disabled_version_are_rejected(
    emulator: KeyVaultDouble, vault_client: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a key version is disabled, processes drop its public key and reject its tokens."""
    monkeypatch.setattr(tokens_module, "FRESH_SECONDS", -1.0)
    version = emulator.keys.create_version("tokens", START.timestamp())
    codec = TokenCodec(VaultSigningKey(vault_client, "tokens"), "issuer", "audience")
    at = now()
    claims = Claims("id", "editor", "editor", "plant-a", frozenset(), at.replace(microsecond=0) + timedelta(hours=1))
    token = await codec.sign(claims, at)
    assert await codec.verify(token) == claims
    emulator.keys.create_version("tokens", at.timestamp())
    assert await codec.verify(token) == claims
    version.enabled = False
    with pytest.raises(WorkspaceError) as caught:
        await codec.verify(token)
    assert caught.value.kind is Kind.UNAUTHENTICATED


@pytest.mark.usefixtures("uncached_key_versions")
async def test_tokens_of_the_only_version_are_rejected_after_it_is_disabled(
    emulator: KeyVaultDouble, vault_client: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the only key version is disabled, processes drop its public key, and no token is accepted."""
    monkeypatch.setattr(tokens_module, "FRESH_SECONDS", -1.0)
    version = emulator.keys.create_version("tokens", START.timestamp())
    codec = TokenCodec(VaultSigningKey(vault_client, "tokens"), "issuer", "audience")
    at = now()
    token = await codec.sign(Claims("id", "e", "e", "plant-a", frozenset(), at + timedelta(hours=1)), at)
    await codec.verify(token)
    version.enabled = False
    for _ in range(2):
        with pytest.raises(WorkspaceError) as caught:
            await codec.verify(token)
        assert caught.value.code == "SIGNING_KEY_UNAVAILABLE"


async def test_the_signature_matches_the_key_id(emulator: KeyVaultDouble, vault_client: Vault) -> None:
    """A token is signed with the version in its key id, even if a new version starts to sign meanwhile."""
    clock = Clock()
    emulator.keys.create_version("tokens", START.timestamp() - 10_000)
    emulator.keys.create_version("tokens", START.timestamp())
    key = VaultSigningKey(vault_client, "tokens", runtime=Runtime(now=clock))
    named = await key.get_key_id()
    clock.now += SETTLING
    await key.sign(b"message")
    version = emulator.requests[-1].split("/")[3]
    found = emulator.keys.find("tokens", version)
    assert found is not None
    assert get_key_id(found) == named
    assert await key.get_key_id() != named


@pytest.mark.usefixtures("uncached_key_versions")
async def test_a_key_vault_outage_stops_signing_only(emulator: KeyVaultDouble, vault_client: Vault) -> None:
    """During an outage, cached public keys verify, but signing fails and a new process has no keys."""
    emulator.keys.create_version("tokens")
    key = VaultSigningKey(vault_client, "tokens")
    before = await list_published_ids(key)
    emulator.down = True
    assert await list_published_ids(key) == before
    failures = [key.sign(b""), VaultSigningKey(vault_client, "tokens").load_public_keys()]
    for failing in failures:
        with pytest.raises(WorkspaceError) as caught:
            await failing
        assert caught.value.code == "SIGNING_KEY_UNAVAILABLE"
    with pytest.raises(WorkspaceError) as caught:
        await VaultNoteSigner(vault_client, "notes").load_public_key_der()
    assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"


class PausedVault(Vault):
    """Client of the emulator; while ``answers`` is not set, lists of versions wait.

    Attributes:
        answers: set by the test while the vault answers.
        list_count: number of requested lists.
    """

    def __init__(self, uri: str, tokens: Tokens, options: Mapping[str, Any]) -> None:
        super().__init__(uri, credential=tokens, options=options)
        self.answers = asyncio.Event()
        self.answers.set()
        self.list_count = 0

    async def list_enabled_versions(self, name: str) -> list[KeyVersion]:
        """Wait until the vault answers, then return the enabled versions."""
        self.list_count += 1
        await self.answers.wait()
        return await super().list_enabled_versions(name)


async def list_trusted_keys(signer: VaultNoteSigner) -> list[str]:
    return [str(spki) for spki in await signer.load_trusted_keys_der()]


@pytest.mark.parametrize(
    ("key_class", "load"), [(VaultSigningKey, list_published_ids), (VaultNoteSigner, list_trusted_keys)]
)
async def test_public_keys_are_known_while_the_vault_does_not_answer(
    emulator: KeyVaultDouble, tokens: Tokens, monkeypatch: pytest.MonkeyPatch, key_class: Any, load: Any
) -> None:
    """While a vault does not answer, requests use the known public keys; later requests get the new ones."""
    time, vault = VirtualTime(START), PausedVault(emulator.uri, tokens, emulator.options)
    emulator.keys.create_version("key", START.timestamp())
    key = key_class(vault, "key", runtime=time.runtime)
    known = await load(key)
    vault.answers.clear()
    emulator.keys.create_version("key", START.timestamp() + 1)
    time.advance(vault_keys.FRESH_SECONDS + 1)
    monkeypatch.setattr(vault_keys, "WAIT_SECONDS", 0.0)
    async with asyncio.timeout(30):
        assert await asyncio.gather(*(load(key) for _ in range(5))) == [known] * 5
    assert vault.list_count == 2
    vault.answers.set()
    time.advance(vault_keys.FRESH_SECONDS + 1)
    monkeypatch.setattr(vault_keys, "WAIT_SECONDS", 30.0)
    assert len(await load(key)) == 2
    await vault.close()


async def test_tokens_of_an_unknown_version_are_accepted_within_seconds(
    emulator: KeyVaultDouble, tokens: Tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token of an unknown key version makes an instance read the versions again, but at most every ten seconds."""
    monkeypatch.setattr(vault_keys, "WAIT_SECONDS", 30.0)
    time, vault = VirtualTime(now()), PausedVault(emulator.uri, tokens, emulator.options)

    def start_instance() -> TokenCodec:
        key = VaultSigningKey(vault, "tokens", runtime=time.runtime)
        return TokenCodec(key, "issuer", "audience", runtime=time.runtime)

    leaked = emulator.keys.create_version("tokens", START.timestamp())
    claims = Claims("id", "e", "e", "plant-a", frozenset(), time.now.replace(microsecond=0) + timedelta(hours=1))
    instance = start_instance()
    await instance.verify(await instance.sign(claims, time.now))
    leaked.enabled = False
    emulator.keys.create_version("tokens", time.now.timestamp())
    token = await start_instance().sign(claims, time.now)
    time.advance(vault_keys.RELOAD_SECONDS + 1)
    assert await instance.verify(token) == claims
    unknown = await TokenCodec(FileSigningKey(tmp_path / "key.pem"), "issuer", "audience").sign(claims, time.now)
    list_count = vault.list_count
    for _ in range(7):
        time.advance(2)
        with pytest.raises(WorkspaceError) as caught:
            await instance.verify(unknown)
        assert caught.value.kind is Kind.UNAUTHENTICATED
    assert vault.list_count == list_count + 1
    await vault.close()


async def test_the_checkpoint_key_does_not_rotate(emulator: KeyVaultDouble, vault_client: Vault) -> None:
    """Checkpoints are always signed with the configured key version, or else with the oldest one."""
    first = emulator.keys.create_version("notes", START.timestamp())
    second = emulator.keys.create_version("notes", START.timestamp() + 1)
    spki = [
        each.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        for each in (first, second)
    ]
    assert await VaultNoteSigner(vault_client, "notes").load_public_key_der() == spki[0]
    assert await VaultNoteSigner(vault_client, f"notes/{second.name}").load_public_key_der() == spki[1]
    with pytest.raises(WorkspaceError) as caught:
        await VaultNoteSigner(vault_client, "notes/none").load_public_key_der()
    assert caught.value.code == "CHECKPOINTS_UNAVAILABLE"


async def test_the_checkpoint_key_that_signs_is_the_first_trusted_key(
    emulator: KeyVaultDouble, vault_client: Vault
) -> None:
    """The trusted keys begin with the key version that signs; the other enabled versions follow, oldest first."""
    versions = [emulator.keys.create_version("notes", START.timestamp() + number) for number in range(3)]
    first, second, third = (
        each.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for each in versions
    )
    for key, expected in (
        ("notes", [first, second, third]),
        (f"notes/{versions[1].name}", [second, first, third]),
        ("notes/none", [first, second, third]),
    ):
        assert await VaultNoteSigner(vault_client, key).load_trusted_keys_der() == expected


async def test_a_missing_key_is_reported_as_unavailable(vault_client: Vault) -> None:
    """If the key is missing, an outage is reported and the key's health check fails."""
    with pytest.raises(WorkspaceError):
        await VaultSigningKey(vault_client, "never-made").get_key_id()
    with pytest.raises(ResourceNotFoundError):
        await vault_client.check_key_exists("never-made")
    await vault_client.close()
    await vault_client.close()
