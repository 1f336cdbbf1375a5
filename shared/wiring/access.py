"""Services that authenticate callers, issue and revoke API keys and tokens, and form the OAuth 2.1 server."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from shared.versioned_cache import Versioned, VersionedCache
from shared.wiring.backends import Backends
from shared.wiring.catalog import MAX_STALE_CREDENTIALS_SECONDS, CatalogServices
from shared.wiring.outbound import OutboundServices
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from shared.auth.audit import AccessAudit
    from shared.auth.authenticator import Authenticator
    from shared.auth.credential_lineage import CredentialLineage
    from shared.auth.credential_revocation import CredentialRevoker
    from shared.auth.entra import EntraTokens
    from shared.auth.issuer import TokenIssuer
    from shared.auth.key_service import ApiKeys
    from shared.auth.older_keys import OlderKeyCreators
    from shared.auth.ports import Credentials, CredentialStore, SigningKey
    from shared.auth.principals import Principal
    from shared.auth.tokens import TokenCodec
    from shared.catalog.reader import CatalogDirectory
    from shared.oauth.authorization import AuthorizationService
    from shared.oauth.client_credentials import ClientCredentialsGrant
    from shared.oauth.errors import RefusalRecorder
    from shared.oauth.grant_ending import GrantEnder
    from shared.oauth.grant_service import GrantService
    from shared.oauth.grants import GrantStore
    from shared.oauth.revocation import TokenRevocation


class AccessServices:
    """Authenticates callers, and issues and revokes API keys, tokens and OAuth grants."""

    def __init__(self, backends: Backends, catalog: CatalogServices, provenance: ProvenanceServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._provenance = provenance

    @cached_property
    def authenticator(self) -> "Authenticator":
        """Service that verifies the credentials of callers."""
        from shared.auth.authenticator import Authenticator

        return self._backends.register_for_closing(
            Authenticator(
                self.directory,
                self.credentials,
                self.credential_store,
                self._token_codec,
                self._entra_tokens,
                older_keys=self._older_key_creators,
                runtime=self._backends.runtime,
            )
        )

    @cached_property
    def signing_key(self) -> "SigningKey":
        """Key that signs the access tokens of this service."""
        if self._backends.uses_azure:
            from shared.backends.azure.vault_keys import VaultSigningKey

            return VaultSigningKey(self._backends.key_vault, self._settings.token_key, runtime=self._backends.runtime)
        from shared.backends.embedded.key_files import FileSigningKey

        return FileSigningKey(self._settings.data_dir / "signing-key.pem", runtime=self._backends.runtime)

    @cached_property
    def token_issuer(self) -> "TokenIssuer":
        """Service that issues and revokes access tokens."""
        from shared.auth.issuer import TokenIssuer

        return TokenIssuer(
            self.directory,
            self.credential_store,
            self._token_codec,
            self.access_audit,
            self.revoker,
            runtime=self._backends.runtime,
        )

    async def find_author_ids_caller_cannot_approve(self, caller: "Principal") -> frozenset[str]:
        """Return the ids of members whose changes the caller must not approve, because the caller may be the author."""
        return await self.lineage.find_author_ids_caller_cannot_approve(caller, self.directory)

    @cached_property
    def lineage(self) -> "CredentialLineage":
        """Service that finds the persons who created a credential."""
        from shared.auth.credential_lineage import CredentialLineage

        return CredentialLineage(
            self.credential_store, self.grant_ender.find_consent_credential_id, self._older_key_creators
        )

    @cached_property
    def api_keys(self) -> "ApiKeys":
        """Service that creates and revokes API keys."""
        from shared.auth.key_service import ApiKeys

        return ApiKeys(
            self.directory,
            self.credential_store,
            self.credentials,
            self.access_audit,
            self.revoker,
            older_keys=self._older_key_creators,
            runtime=self._backends.runtime,
        )

    @cached_property
    def revoker(self) -> "CredentialRevoker":
        """Service that revokes API keys and tokens, and completes interrupted revocations."""
        from shared.auth.credential_revocation import CredentialRevoker

        return CredentialRevoker(
            self.credential_store,
            self.credentials,
            self.access_audit,
            grants=self.grant_ender,
            runtime=self._backends.runtime,
        )

    @cached_property
    def _older_key_creators(self) -> "OlderKeyCreators":
        """Service that searches audit events for the creators of old API keys."""
        from shared.auth.older_keys import OlderKeyCreators

        return OlderKeyCreators(self.find_access_event, runtime=self._backends.runtime)

    async def find_access_event(self, append_id: str) -> "Mapping[str, Any] | None":
        """Return the audit event about a credential with this append id; None if it is missing or damaged."""
        from shared.provenance.decisions import parse_content_if_verified
        from shared.provenance.ports import ChainKey, LookupField, Target

        chain = ChainKey(Target.ACCESS_CONTROL, "")
        found = await self._provenance.chain_store.find(chain, LookupField.APPEND_ID, [append_id])
        return parse_content_if_verified(found[0]) if found else None

    @cached_property
    def grant_store(self) -> "GrantStore":
        """Store of OAuth grants: the rights that members delegated to OAuth clients."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_credentials import CosmosGrantStore

            return CosmosGrantStore(self._backends.cosmos)
        from shared.backends.embedded.grants import SqliteGrantStore

        return SqliteGrantStore(self._backends.workspace_file)

    @cached_property
    def grant_ender(self) -> "GrantEnder":
        """Service that ends OAuth grants and revokes their tokens."""
        from shared.oauth.grant_ending import GrantEnder

        return GrantEnder(
            self.grant_store,
            self.credential_store,
            self.credentials,
            self.directory,
            self.access_audit,
            self._find_creation_time_of_oauth_client,
            runtime=self._backends.runtime,
        )

    async def _find_creation_time_of_oauth_client(self, client_id: str) -> "datetime | None":
        from shared.catalog.items import ItemKind

        # A stored client that cannot be parsed was not removed; a newer version of the service possibly stored it.
        item = (await self._catalog.reader.get_catalog()).items.get((ItemKind.OAUTH_CLIENT, client_id))
        return None if item is None else item.created_at

    @cached_property
    def directory(self) -> "CatalogDirectory":
        """Reader of the team's members from the catalog."""
        from shared.catalog.reader import CatalogDirectory

        return CatalogDirectory(self._catalog.reader)

    @cached_property
    def credential_store(self) -> "CredentialStore":
        """Store of API keys and issued tokens."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_credentials import CosmosCredentialStore

            return CosmosCredentialStore(self._backends.cosmos)
        from shared.backends.embedded.credentials import SqliteCredentialStore

        return SqliteCredentialStore(self._backends.workspace_file)

    @cached_property
    def credentials(self) -> "VersionedCache[Credentials]":
        """Cache of the stored API keys and revocations of tokens."""
        store = self.credential_store

        async def load_credentials() -> "Versioned[Credentials]":
            loaded = await store.load()
            return loaded.version, loaded

        return VersionedCache(
            store.read_version,
            load_credentials,
            max_age=self._settings.refresh_seconds,
            max_stale=MAX_STALE_CREDENTIALS_SECONDS,
            runtime=self._backends.runtime,
        )

    @cached_property
    def _token_codec(self) -> "TokenCodec":
        from shared.auth.tokens import TokenCodec

        return TokenCodec(
            self.signing_key, self._settings.token_issuer, self._settings.token_audience, runtime=self._backends.runtime
        )

    @cached_property
    def access_audit(self) -> "AccessAudit":
        """Service that records audit events about credentials."""
        from shared.auth.audit import AccessAudit

        return AccessAudit(self.directory, self._provenance.audit_log)

    @cached_property
    def _entra_tokens(self) -> "EntraTokens | None":
        from shared.auth.entra import EntraTokens

        configured = self._settings
        if not configured.entra_tenant_id or not configured.entra_audience:
            return None
        from shared.backends.outbound_http import HttpOpenIdProvider

        address = f"{configured.entra_authority.rstrip('/')}/{configured.entra_tenant_id}/v2.0"
        provider = HttpOpenIdProvider(f"{address}/.well-known/openid-configuration", runtime=self._backends.runtime)
        return EntraTokens(provider, configured.entra_tenant_id, configured.entra_audience)


class OAuthServices:
    """Issues access tokens to OAuth clients."""

    def __init__(
        self, backends: Backends, catalog: CatalogServices, access: AccessServices, outbound: OutboundServices
    ) -> None:
        self._backends = backends
        self._catalog = catalog
        self._access = access
        self._outbound = outbound

    @cached_property
    def client_credentials(self) -> "ClientCredentialsGrant":
        """Grant type ``client_credentials``, which issues tokens to services."""
        from shared.oauth.client_credentials import ClientCredentialsGrant

        return ClientCredentialsGrant(self._access.authenticator, self._access.token_issuer)

    @cached_property
    def authorization(self) -> "AuthorizationService":
        """Service that checks authorization requests and records the members' consents."""
        from shared.oauth.authorization import AuthorizationService
        from shared.oauth.clients import ClientDirectory, FetchedClientDocuments

        runtime = self._backends.runtime
        documents = FetchedClientDocuments(self._outbound.http, runtime=runtime)
        return AuthorizationService(
            ClientDirectory(self._catalog.reader, documents),
            self._access.grant_store,
            self._access.lineage,
            self._access.access_audit,
            runtime=runtime,
        )

    @cached_property
    def grants(self) -> "GrantService":
        """Service that issues the tokens of OAuth grants, to which members consented."""
        from shared.oauth.grant_service import GrantService

        return GrantService(
            self._access.grant_store,
            self._access.grant_ender,
            self._access.token_issuer,
            self._access.credential_store,
            self._access.credentials,
            self._access.directory,
            runtime=self._backends.runtime,
        )

    @cached_property
    def revocation(self) -> "TokenRevocation":
        """Service that revokes tokens at the request of their clients."""
        from shared.oauth.revocation import TokenRevocation

        return TokenRevocation(
            self._access.authenticator,
            self._access.token_issuer,
            self._access.credential_store,
            self.client_credentials,
            self.grants,
        )

    @cached_property
    def refusals(self) -> "RefusalRecorder":
        """Service that counts refused requests of clients, and records them as audit events."""
        from shared.oauth.errors import RefusalRecorder

        return RefusalRecorder(self._access.access_audit, runtime=self._backends.runtime)
