"""Access services: credentials, tokens and keys."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.versioned_cache import VersionedCache
from shared.wiring.backends import Backends
from shared.wiring.catalog import MAX_STALE_CREDENTIALS_SECONDS, CatalogServices
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from shared.auth.audit import AccessAudit
    from shared.auth.authenticator import Authenticator
    from shared.auth.entra import EntraTokens
    from shared.auth.issuer import TokenIssuer
    from shared.auth.key_service import ApiKeys
    from shared.auth.ports import Credentials, CredentialStore, SigningKey
    from shared.auth.tokens import TokenCodec
    from shared.catalog.reader import CatalogDirectory


class AccessServices:
    """Authenticates callers and issues credentials."""

    def __init__(self, backends: Backends, catalog: CatalogServices, provenance: ProvenanceServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._provenance = provenance

    @cached_property
    def authenticator(self) -> "Authenticator":
        """Identifies callers."""
        from shared.auth.authenticator import Authenticator

        return self._backends.close_at_exit(
            Authenticator(
                self._directory, self._credentials, self._credential_store, self._token_codec, self._entra_tokens
            )
        )

    @cached_property
    def signing_key(self) -> "SigningKey":
        """Key that signs tokens."""
        if self._backends.on_azure:
            from shared.backends.azure.vault_keys import VaultSigningKey

            return VaultSigningKey(self._backends.key_vault, self._settings.token_key)
        from shared.backends.embedded.key_files import FileSigningKey

        return FileSigningKey(self._settings.data_dir / "signing-key.pem")

    @cached_property
    def token_issuer(self) -> "TokenIssuer":
        """Issues tokens."""
        from shared.auth.issuer import TokenIssuer

        return TokenIssuer(
            self._directory, self._credential_store, self._credentials, self._token_codec, self._access_audit
        )

    @cached_property
    def api_keys(self) -> "ApiKeys":
        """Creates and revokes API keys."""
        from shared.auth.key_service import ApiKeys

        return ApiKeys(self._directory, self._credential_store, self._credentials, self._access_audit)

    @cached_property
    def _directory(self) -> "CatalogDirectory":
        from shared.catalog.reader import CatalogDirectory

        return CatalogDirectory(self._catalog.reader)

    @cached_property
    def _credential_store(self) -> "CredentialStore":
        if self._backends.on_azure:
            from shared.backends.azure.cosmos_credentials import CosmosCredentialStore

            return CosmosCredentialStore(self._backends.cosmos)
        from shared.backends.embedded.credentials import SqliteCredentialStore

        return SqliteCredentialStore(self._backends.workspace_file)

    @cached_property
    def _credentials(self) -> "VersionedCache[Credentials]":
        store = self._credential_store

        async def load() -> "tuple[int, Credentials]":
            loaded = await store.load()
            return loaded.version, loaded

        return VersionedCache(
            store.version, load, max_age=self._settings.refresh_seconds, max_stale=MAX_STALE_CREDENTIALS_SECONDS
        )

    @cached_property
    def _token_codec(self) -> "TokenCodec":
        from shared.auth.tokens import TokenCodec

        return TokenCodec(self.signing_key, self._settings.token_issuer, self._settings.token_audience)

    @cached_property
    def _access_audit(self) -> "AccessAudit":
        from shared.auth.audit import AccessAudit

        return AccessAudit(self._directory, self._provenance.audit_log)

    @cached_property
    def _entra_tokens(self) -> "EntraTokens | None":
        from shared.auth.entra import EntraTokens

        configured = self._settings
        if not configured.entra_tenant_id or not configured.entra_audience:
            return None
        from shared.backends.open_id import HttpOpenIdProvider

        address = f"{configured.entra_authority.rstrip('/')}/{configured.entra_tenant_id}/v2.0"
        provider = HttpOpenIdProvider(f"{address}/.well-known/openid-configuration")
        return EntraTokens(provider, configured.entra_tenant_id, configured.entra_audience)
