"""Client of Azure Key Vault for P-256 keys. The vault computes the signatures; private keys never leave the vault.

Tested with the genuine SDK against a test server; never run against Key Vault.
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
from azure.keyvault.keys import KeyProperties, KeyVaultKey
from azure.keyvault.keys.aio import KeyClient
from azure.keyvault.keys.crypto import SignatureAlgorithm
from azure.keyvault.keys.crypto.aio import CryptographyClient
from cryptography.hazmat.primitives.asymmetric import ec

from shared.backends.azure.identity import create_app_credential
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.tracing import open_call_span

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 10
RETRIES: Final = 2
_CURVE: Final = "P-256"
_LOG = logs.get_logger("key_vault")


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """Enabled version of a key in Key Vault.

    Attributes:
        version: id of the version in the vault.
        created_at: time at which the version was created, in whole seconds.
        public: public key of this version.
        not_before: time before which the vault does not sign with this version; None for no such time.
        expires_at: time from which the vault does not sign with this version; None for no such time.
    """

    version: str
    created_at: datetime
    public: ec.EllipticCurvePublicKey
    not_before: datetime | None = None
    expires_at: datetime | None = None

    def can_sign_at(self, at: datetime) -> bool:
        """Return whether the vault signs with this version at a time."""
        return (self.not_before is None or self.not_before <= at) and (self.expires_at is None or at < self.expires_at)


class Vault:
    """Client of one Azure Key Vault, opened on first use.

    Args:
        uri: URL of the vault.
        client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        credential: Azure credential that is used instead of the app's identity; None for the app's identity.
        options: more options of the SDK's client, for test servers.
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
        self._custom_credential = credential
        self._options = dict(options or {})
        self._client: KeyClient | None = None
        self._credential: DefaultAzureCredential | None = None
        self._signers: dict[tuple[str, str], CryptographyClient] = {}
        self._public_keys: dict[tuple[str, str], ec.EllipticCurvePublicKey] = {}

    async def list_enabled_versions(self, key_name: str) -> list[KeyVersion]:
        """Return the enabled versions of a key, oldest first.

        Raises:
            AzureError: the vault does not respond, or has no key of this name.
            ValueError: the key is not a P-256 key.
        """
        with _open_vault_call_span("list versions"):
            listed = self._open_client().list_properties_of_key_versions(key_name)
            enabled = [properties async for properties in listed if properties.enabled and properties.version]
            found = [await self._load_key_version(key_name, properties) for properties in enabled]
        return sorted(found, key=lambda version: (version.created_at, version.version))

    async def sign(self, key_name: str, version_id: str, message: bytes) -> bytes:
        """Sign a message in the vault; return the ES256 signature (r and s) as 64 bytes.

        Raises:
            AzureError: the vault does not respond, or denies the signature.
        """
        signer = self._signers.get((key_name, version_id))
        if signer is None:
            signer = self._open_client().get_cryptography_client(key_name, key_version=version_id)
            self._signers[key_name, version_id] = signer
        digest = hashlib.sha256(message).digest()
        with _open_vault_call_span("sign"):
            return (await signer.sign(SignatureAlgorithm.es256, digest)).signature

    async def check_key_exists(self, key_name: str) -> None:
        """Check that the vault has a key of this name.

        Raises:
            AzureError: the vault does not respond, or has no key of this name.
        """
        with _open_vault_call_span("get"):
            await self._open_client().get_key(key_name)

    async def close(self) -> None:
        """Close the connections to the key vault."""
        client, self._client = self._client, None
        credential, self._credential = self._credential, None
        self._signers.clear()
        if client is not None:
            await client.close()
        if credential is not None:
            await credential.close()

    async def _load_key_version(self, key_name: str, properties: KeyProperties) -> KeyVersion:
        version, created_at = str(properties.version), properties.created_on or datetime.fromtimestamp(0, UTC)
        # The key of a version never changes, but the times of its validity can.
        if (key_name, version) not in self._public_keys:
            self._public_keys[key_name, version] = _to_public_key(await self._open_client().get_key(key_name, version))
        public = self._public_keys[key_name, version]
        return KeyVersion(version, created_at, public, properties.not_before, properties.expires_on)

    def _open_client(self) -> KeyClient:
        if self._client is None:
            credential = self._custom_credential
            if credential is None:
                credential = self._credential = create_app_credential(self._client_id)
            timeouts = {"connection_timeout": CONNECT_SECONDS, "read_timeout": READ_SECONDS, "retry_total": RETRIES}
            self._client = KeyClient(self._uri, credential, **{**timeouts, **self._options})
        return self._client


async def call_vault[T](request: Callable[[], Awaitable[T]], error_code: str, key_description: str) -> T:
    """Send a request to the vault and return its result; convert a failure to an error of the service.

    Raises:
        WorkspaceError: UNAVAILABLE with ``error_code``; the message contains ``key_description``.
    """
    try:
        return await request()
    except (AzureError, OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
        status = getattr(error, "status_code", None)
        _LOG.warning("the key vault does not answer", extra=logs.fields(error=type(error).__name__, status=status))
        detail = f"Key Vault does not respond, so {key_description} cannot be used; retry later."
        raise WorkspaceError(Kind.UNAVAILABLE, error_code, detail) from error


def _open_vault_call_span(operation: str) -> AbstractContextManager[None]:
    return open_call_span(
        f"{operation} key", {"az.namespace": "Microsoft.KeyVault", "workspace.vault.operation": operation}
    )


def _to_public_key(key: KeyVaultKey) -> ec.EllipticCurvePublicKey:
    material = key.key
    x, y = getattr(material, "x", None), getattr(material, "y", None)
    if getattr(material, "crv", None) != _CURVE or not x or not y:
        raise ValueError(f"the key {key.name} in Key Vault is not on the curve {_CURVE}")
    return ec.EllipticCurvePublicNumbers(int.from_bytes(x), int.from_bytes(y), ec.SECP256R1()).public_key()
