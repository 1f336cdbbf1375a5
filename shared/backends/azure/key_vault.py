"""Keys in Azure Key Vault: P-256 keys that sign there and never leave it.

Tested with the genuine SDK against a test double at the wire; nothing here has been run against Key Vault.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from azure.core.credentials_async import AsyncTokenCredential
from azure.core.exceptions import AzureError
from azure.identity.aio import DefaultAzureCredential
from azure.keyvault.keys import KeyVaultKey
from azure.keyvault.keys.aio import KeyClient
from azure.keyvault.keys.crypto import SignatureAlgorithm
from azure.keyvault.keys.crypto.aio import CryptographyClient
from cryptography.hazmat.primitives.asymmetric import ec

from shared.backends.azure.identity import app_identity
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.tracing import call_span

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 10
RETRIES: Final = 2
_CURVE: Final = "P-256"
_LOG = logs.get_logger("key_vault")


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """A version of a key that is enabled.

    Attributes:
        version: what the vault calls it.
        created_at: when it was made; to the second.
        public: the public key.
    """

    version: str
    created_at: datetime
    public: ec.EllipticCurvePublicKey


class Vault:
    """A key vault, opened on first use.

    Args:
        uri: the vault's address.
        client_id: of the user-assigned identity to sign in with; empty for the system-assigned one.
        credential: to sign in with instead.
        options: of the SDK's client besides, for test doubles.
    """

    def __init__(
        self,
        uri: str,
        *,
        client_id: str = "",
        credential: AsyncTokenCredential | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._uri = uri
        self._client_id = client_id
        self._given = credential
        self._options = dict(options or {})
        self._client: KeyClient | None = None
        self._credential: DefaultAzureCredential | None = None
        self._signers: dict[tuple[str, str], CryptographyClient] = {}
        self._known: dict[tuple[str, str], KeyVersion] = {}

    async def versions(self, name: str) -> list[KeyVersion]:
        """Return the enabled versions of a key, the oldest first.

        Raises:
            AzureError: the vault does not answer, or has no such key.
            ValueError: it is no P-256 key.
        """
        with _span("list versions"):
            listed = self._opened().list_properties_of_key_versions(name)
            enabled = [properties.version async for properties in listed if properties.enabled]
            found = [await self._version(name, version) for version in enabled if version]
        return sorted(found, key=lambda version: (version.created_at, version.version))

    async def sign(self, name: str, version: str, message: bytes) -> bytes:
        """Return the ES256 signature of a message, r and s as 64 bytes.

        Raises:
            AzureError: the vault does not answer, or does not let this key sign.
        """
        signer = self._signers.get((name, version))
        if signer is None:
            signer = self._opened().get_cryptography_client(name, key_version=version)
            self._signers[name, version] = signer
        digest = hashlib.sha256(message).digest()
        with _span("sign"):
            return (await signer.sign(SignatureAlgorithm.es256, digest)).signature

    async def check(self, name: str) -> None:
        """Return when the vault answers and has a key.

        Raises:
            AzureError: otherwise.
        """
        with _span("get"):
            await self._opened().get_key(name)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        credential, self._credential = self._credential, None
        self._signers.clear()
        if client is not None:
            await client.close()
        if credential is not None:
            await credential.close()

    async def _version(self, name: str, version: str) -> KeyVersion:
        # A version's key never changes.
        if (name, version) not in self._known:
            key = await self._opened().get_key(name, version)
            created_at = key.properties.created_on or datetime.fromtimestamp(0, UTC)
            self._known[name, version] = KeyVersion(version, created_at, _public(key))
        return self._known[name, version]

    def _opened(self) -> KeyClient:
        if self._client is None:
            credential = self._given
            if credential is None:
                credential = self._credential = app_identity(self._client_id)
            waits = {"connection_timeout": CONNECT_SECONDS, "read_timeout": READ_SECONDS, "retry_total": RETRIES}
            self._client = KeyClient(self._uri, credential, **{**waits, **self._options})
        return self._client


async def call_vault[T](work: Callable[[], Awaitable[T]], code: str, what: str) -> T:
    """Return what a call to the vault gives.

    Raises:
        WorkspaceError: UNAVAILABLE with a code, saying that ``what`` cannot be reached.
    """
    try:
        return await work()
    except (AzureError, OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
        status = getattr(error, "status_code", None)
        _LOG.warning("the key vault does not answer", extra=logs.fields(error=type(error).__name__, status=status))
        detail = f"{what} cannot be reached at the moment; try again"
        raise WorkspaceError(Kind.UNAVAILABLE, code, detail) from error


def _span(operation: str) -> AbstractContextManager[None]:
    return call_span(f"{operation} key", {"az.namespace": "Microsoft.KeyVault", "workspace.vault.operation": operation})


def _public(key: KeyVaultKey) -> ec.EllipticCurvePublicKey:
    material = key.key
    x, y = getattr(material, "x", None), getattr(material, "y", None)
    if getattr(material, "crv", None) != _CURVE or not x or not y:
        raise ValueError(f"{key.name} is no {_CURVE} key")
    return ec.EllipticCurvePublicNumbers(int.from_bytes(x), int.from_bytes(y), ec.SECP256R1()).public_key()
