"""The one place that joins domains and adapters; everything is made on first use."""

import asyncio
from functools import cache, cached_property
from typing import TYPE_CHECKING

from shared.auth.audit import AccessAudit
from shared.auth.authenticator import Authenticator
from shared.auth.entra import EntraTokens
from shared.auth.issuer import TokenIssuer
from shared.auth.key_service import ApiKeys
from shared.auth.ports import Credentials, CredentialStore, SigningKey
from shared.auth.tokens import TokenCodec
from shared.catalog.apply import CatalogService
from shared.catalog.ports import CatalogStore
from shared.catalog.reader import CatalogReader
from shared.catalog.team import CatalogDirectory
from shared.errors import Kind, WorkspaceError
from shared.idempotency import IdempotencyKeys
from shared.provenance.amendments import Amendments
from shared.provenance.chain_log import ChainLog
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.event_log import EventLog
from shared.provenance.ports import ChainStore
from shared.provenance.proofs import Proofs
from shared.provenance.selection import not_provisioned
from shared.provenance.verification import Verifier
from shared.settings import Settings, Stores, settings
from shared.snapshots import Snapshot
from shared.telemetry.acceptance import TelemetryService
from shared.telemetry.ingest import Ingest
from shared.telemetry.ports import ConnectionStateStore, EventSender
from shared.telemetry.simulators import Simulators
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.definitions import QueryDefinitions
from shared.warm_queries.ports import QueryEngine
from shared.warm_queries.service import WarmQueries

if TYPE_CHECKING:
    from shared.backends.embedded.sqlite import Database

PROVENANCE = "provenance"
"""The feature that every provenance route needs."""

MAX_STALE_CREDENTIALS_SECONDS = 15.0
"""A revocation, and the disabling of a member, are in force within this time also while the store does not answer."""


class Services:
    """Every service of the app, wired for one set of settings."""

    def __init__(self, configured: Settings) -> None:
        self.settings = configured

    @cached_property
    def catalog_store(self) -> CatalogStore:
        """Where the catalog is kept."""
        from shared.backends.embedded.catalog import SqliteCatalogStore  # noqa: PLC0415

        return SqliteCatalogStore(self._workspace_file)

    @cached_property
    def catalog(self) -> CatalogReader:
        """The catalog as this process knows it."""
        return CatalogReader(
            self.catalog_store, self.settings.refresh_seconds, max_stale_seconds=MAX_STALE_CREDENTIALS_SECONDS
        )

    @cached_property
    def catalog_service(self) -> CatalogService:
        """Applies workspace documents."""
        return CatalogService(self.catalog_store, self.audit_log, changed=self.catalog.invalidate)

    @cached_property
    def chain_store(self) -> ChainStore:
        """Keeps the audit chains."""
        if self.settings.stores is Stores.AZURE:
            from shared.backends.azure.cosmos_account import CosmosAccount  # noqa: PLC0415
            from shared.backends.azure.cosmos_chain import CosmosChainStore  # noqa: PLC0415

            configured = self.settings
            return CosmosChainStore(
                CosmosAccount(
                    configured.cosmos_endpoint,
                    configured.cosmos_database,
                    client_id=configured.managed_identity_client_id,
                )
            )
        from shared.backends.embedded.provenance import SqliteChainStore  # noqa: PLC0415

        return SqliteChainStore(self.settings.data_dir / "provenance.sqlite")

    @cached_property
    def chain_log(self) -> ChainLog:
        """Appends to the audit chains."""
        return ChainLog(self.chain_store, self._workspace_id)

    @cached_property
    def audit_log(self) -> EventLog:
        """Appends audit events."""
        return EventLog(self.chain_log)

    @cached_property
    def amendments(self) -> Amendments:
        """Creates and decides corrections."""
        return Amendments(self.chain_log, self.chain_store)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Makes and reads signed checkpoints."""
        self._embedded("checkpoints")
        from shared.backends.embedded.provenance_checkpoints import FileCheckpointStore  # noqa: PLC0415
        from shared.backends.embedded.provenance_key import FileNoteSigner  # noqa: PLC0415

        folder = self.settings.data_dir
        notes = FileCheckpointStore(folder / "checkpoints")
        return Checkpoints(self.chain_store, notes, FileNoteSigner(folder / "checkpoint-key.pem"), self._workspace_id)

    @cached_property
    def proofs(self) -> Proofs:
        """Proves what checkpoints cover."""
        return Proofs(self.chain_store)

    @cached_property
    def verifier(self) -> Verifier:
        """Verifies audit chains."""
        return Verifier(self.chain_store, self._workspace_id, self.checkpoints)

    @cached_property
    def idempotency(self) -> IdempotencyKeys:
        """Remembers idempotency keys."""
        from shared.backends.embedded.idempotency import SqliteIdempotencyStore  # noqa: PLC0415

        return IdempotencyKeys(SqliteIdempotencyStore(self._workspace_file))

    @cached_property
    def authenticator(self) -> Authenticator:
        """Finds out who calls."""
        return Authenticator(
            self._directory, self._credentials, self._credential_store, self._token_codec, self._entra_tokens
        )

    @cached_property
    def signing_key(self) -> SigningKey:
        """The key that signs tokens."""
        self._embedded("signing key")
        from shared.backends.embedded.signing_key import FileSigningKey  # noqa: PLC0415

        return FileSigningKey(self.settings.data_dir / "signing-key.pem")

    @cached_property
    def token_issuer(self) -> TokenIssuer:
        """Hands out tokens."""
        return TokenIssuer(
            self._directory, self._credential_store, self._credentials, self._token_codec, self._access_audit
        )

    @cached_property
    def api_keys(self) -> ApiKeys:
        """Makes and revokes API keys."""
        return ApiKeys(self._directory, self._credential_store, self._credentials, self._access_audit)

    @cached_property
    def engine(self) -> QueryEngine:
        """Runs KQL."""
        from shared.backends.azure.kusto import KustoEngine  # noqa: PLC0415

        configured = self.settings
        return KustoEngine(configured.kusto_uri, configured.kusto_database, configured.managed_identity_client_id)

    @cached_property
    def warm_queries(self) -> WarmQueries:
        """Executes queries."""
        return WarmQueries(self.catalog.current, self.engine, self.settings.query_timeout_seconds)

    @cached_property
    def query_columns(self) -> QueryColumns:
        """Knows which columns queries give."""
        return QueryColumns(self.engine)

    @cached_property
    def query_definitions(self) -> QueryDefinitions:
        """Makes, approves and removes queries."""
        return QueryDefinitions(self.catalog_service, self.query_columns)

    @cached_property
    def sender(self) -> EventSender:
        """Sends to the hubs."""
        if self.settings.stores is Stores.AZURE:
            from shared.backends.azure.event_hubs import EventHubsSender  # noqa: PLC0415

            return EventHubsSender(self.settings.event_hubs_namespace, self.settings.managed_identity_client_id)
        from shared.backends.embedded.hub import HubLog  # noqa: PLC0415

        return HubLog(self.settings.data_dir / "hub.sqlite")

    @cached_property
    def telemetry(self) -> TelemetryService:
        """Takes telemetry in."""
        return TelemetryService(self.catalog.current, self.sender)

    @cached_property
    def connection_states(self) -> ConnectionStateStore:
        """Status and statistics of connections."""
        self._embedded("connection states")
        from shared.backends.embedded.connection_states import EmbeddedConnectionStates  # noqa: PLC0415

        return EmbeddedConnectionStates(self.settings.data_dir / "workspace.sqlite")

    @cached_property
    def ingest(self) -> Ingest:
        """Turns hub events into impulses."""
        return Ingest(self.catalog.current, self.sender, self.connection_states)

    @cached_property
    def simulators(self) -> Simulators:
        """Sends simulated telemetry."""
        return Simulators(self.catalog.current, self.sender)

    async def check(self) -> None:
        """Return when stores and query engine answer, and take writes where that costs little to try.

        Raises:
            Exception: one of them does not.
        """
        await asyncio.gather(self._workspace_file.check(), self.engine.ping(), self.catalog.current())

    async def require_feature(self, feature: str) -> None:
        """Return when the workspace has a feature.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_NOT_PROVISIONED``.
        """
        if feature == PROVENANCE and not await self.has_feature(feature):
            raise not_provisioned()

    async def has_feature(self, feature: str) -> bool:
        """Return whether the workspace has a feature."""
        return feature == PROVENANCE and (await self.catalog.current()).policies.provenance is not None

    async def close(self) -> None:
        """Finish what runs and close whatever was opened; for short-lived processes and clean stops."""
        for name in ("sender", "engine", "connection_states", "audit_log", "chain_store", "_workspace_file"):
            if name in self.__dict__:
                await self.__dict__[name].close()

    @cached_property
    def _workspace_file(self) -> "Database":
        self._embedded("workspace store")
        from shared.backends.embedded import catalog, credentials, idempotency  # noqa: PLC0415
        from shared.backends.embedded.sqlite import Database  # noqa: PLC0415

        return Database(
            self.settings.data_dir / "workspace.sqlite", catalog.SCHEMA + credentials.SCHEMA + idempotency.SCHEMA
        )

    @cached_property
    def _directory(self) -> CatalogDirectory:
        return CatalogDirectory(self.catalog)

    @cached_property
    def _credential_store(self) -> CredentialStore:
        from shared.backends.embedded.credentials import SqliteCredentialStore  # noqa: PLC0415

        return SqliteCredentialStore(self._workspace_file)

    @cached_property
    def _credentials(self) -> Snapshot[Credentials]:
        store = self._credential_store

        async def load() -> tuple[int, Credentials]:
            loaded = await store.load()
            return loaded.version, loaded

        return Snapshot(
            store.version, load, max_age=self.settings.refresh_seconds, max_stale=MAX_STALE_CREDENTIALS_SECONDS
        )

    @cached_property
    def _token_codec(self) -> TokenCodec:
        return TokenCodec(self.signing_key, self.settings.token_issuer, self.settings.token_audience)

    @cached_property
    def _access_audit(self) -> AccessAudit:
        return AccessAudit(self._directory, self.audit_log)

    @cached_property
    def _entra_tokens(self) -> EntraTokens | None:
        configured = self.settings
        if not configured.entra_tenant_id or not configured.entra_audience:
            return None
        from shared.backends.open_id import HttpOpenIdProvider  # noqa: PLC0415

        address = f"{configured.entra_authority.rstrip('/')}/{configured.entra_tenant_id}/v2.0"
        provider = HttpOpenIdProvider(f"{address}/.well-known/openid-configuration")
        return EntraTokens(provider, configured.entra_tenant_id, configured.entra_audience)

    async def _workspace_id(self) -> str:
        workspace = (await self.catalog.current()).workspace
        if workspace is None:
            raise WorkspaceError(Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", "No workspace document was applied yet.")
        return workspace.id

    def _embedded(self, what: str) -> None:
        if self.settings.stores is not Stores.EMBEDDED:
            raise WorkspaceError(
                Kind.UNAVAILABLE, "STORE_NOT_AVAILABLE", f"STORES=azure: there is no Azure adapter of the {what} yet."
            )


@cache
def services() -> Services:
    """Return the services of this process."""
    return Services(settings())
