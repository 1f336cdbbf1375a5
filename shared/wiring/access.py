"""Access services: credentials, tokens, keys and rate limits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from shared.observability.metrics import count
from shared.versioned_cache import VersionedCache
from shared.wiring.base import MAX_STALE_CREDENTIALS_SECONDS, CatalogServices
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from shared.auth.audit import AccessAudit
    from shared.auth.authenticator import Authenticator
    from shared.auth.entra import EntraTokens
    from shared.auth.issuer import TokenIssuer
    from shared.auth.key_service import ApiKeys
    from shared.auth.ports import Credentials, CredentialStore, SigningKey
    from shared.auth.principals import Principal
    from shared.auth.tokens import TokenCodec
    from shared.backends.embedded.sqlite import SqliteDatabase
    from shared.catalog.reader import CatalogDirectory
    from shared.rate_limits.limiter import RateLimitDecision, RateLimiter
    from shared.rate_limits.ports import LeaseStore


class AccessServices(ProvenanceServices):
    """Authenticates callers and issues credentials."""

    @cached_property
    def authenticator(self) -> "Authenticator":
        """Identifies callers."""
        from shared.auth.authenticator import Authenticator

        return self.close_at_exit(
            Authenticator(
                self._directory, self._credentials, self._credential_store, self._token_codec, self._entra_tokens
            )
        )

    @cached_property
    def signing_key(self) -> "SigningKey":
        """Key that signs tokens."""
        if self.on_azure:
            from shared.backends.azure.vault_keys import VaultSigningKey

            return VaultSigningKey(self.key_vault, self.settings.token_key)
        from shared.backends.embedded.key_files import FileSigningKey

        return FileSigningKey(self.settings.data_dir / "signing-key.pem")

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

        return CatalogDirectory(self.catalog)

    @cached_property
    def _credential_store(self) -> "CredentialStore":
        if self.on_azure:
            from shared.backends.azure.cosmos_credentials import CosmosCredentialStore

            return CosmosCredentialStore(self.cosmos)
        from shared.backends.embedded.credentials import SqliteCredentialStore

        return SqliteCredentialStore(self._workspace_file)

    @cached_property
    def _credentials(self) -> "VersionedCache[Credentials]":
        store = self._credential_store

        async def load() -> "tuple[int, Credentials]":
            loaded = await store.load()
            return loaded.version, loaded

        return VersionedCache(
            store.version, load, max_age=self.settings.refresh_seconds, max_stale=MAX_STALE_CREDENTIALS_SECONDS
        )

    @cached_property
    def _token_codec(self) -> "TokenCodec":
        from shared.auth.tokens import TokenCodec

        return TokenCodec(self.signing_key, self.settings.token_issuer, self.settings.token_audience)

    @cached_property
    def _access_audit(self) -> "AccessAudit":
        from shared.auth.audit import AccessAudit

        return AccessAudit(self._directory, self.audit_log)

    @cached_property
    def _entra_tokens(self) -> "EntraTokens | None":
        from shared.auth.entra import EntraTokens

        configured = self.settings
        if not configured.entra_tenant_id or not configured.entra_audience:
            return None
        from shared.backends.open_id import HttpOpenIdProvider

        address = f"{configured.entra_authority.rstrip('/')}/{configured.entra_tenant_id}/v2.0"
        provider = HttpOpenIdProvider(f"{address}/.well-known/openid-configuration")
        return EntraTokens(provider, configured.entra_tenant_id, configured.entra_audience)


class LimitServices(CatalogServices):
    """Enforces the request budget of the workspace's tier."""

    @cached_property
    def rate_limiter(self) -> "RateLimiter":
        """Counts requests."""
        from shared.rate_limits.limiter import RateLimiter

        return RateLimiter(self._lease_store)

    @cached_property
    def _lease_store(self) -> "LeaseStore":
        if self.on_azure:
            from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore

            return CosmosLeaseStore(self.cosmos)
        from shared.backends.embedded.rate_limits import SqliteLeaseStore

        return SqliteLeaseStore(self._limits_file)

    @cached_property
    def _limits_file(self) -> "SqliteDatabase":
        from shared.backends.embedded import places
        from shared.backends.embedded.rate_limits import SCHEMA, TIMEOUT_SECONDS
        from shared.backends.embedded.sqlite import SqliteDatabase

        path = self.settings.data_dir / "rate-limits.sqlite"
        return self.close_at_exit(SqliteDatabase(path, SCHEMA + places.SCHEMA, write_seconds=TIMEOUT_SECONDS))

    @asynccontextmanager
    async def limits(self, caller: "Principal") -> "AsyncIterator[RateLimitDecision]":
        """Count a caller's request until it is completed."""
        from shared.rate_limits.models import budget_for

        budget = budget_for(await self.catalog.current())
        async with self.rate_limiter.admit(caller.member_id, budget) as admission:
            if admission.rejection is not None:
                count("workspace.rate_limit.refusals")
            yield admission
