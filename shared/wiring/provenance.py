"""Services of provenance: audit chains, checkpoints, amendments, and audited changes of the catalog."""

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.telemetry import TelemetryServices
from shared.wiring.webhooks import WebhookServices

if TYPE_CHECKING:
    from shared.catalog.administration import Administration
    from shared.catalog.service import CatalogService
    from shared.provenance.amendments import Amendments
    from shared.provenance.background_verification import BackgroundVerification
    from shared.provenance.chain_log import ChainLog, EventLog
    from shared.provenance.checkpoint_ports import CheckpointStore, NoteSigner
    from shared.provenance.checkpoints import Checkpoints
    from shared.provenance.merkle_proofs import Proofs
    from shared.provenance.overview import AuditOverview
    from shared.provenance.overview_ports import ChainOverview
    from shared.provenance.ports import ChainStore
    from shared.provenance.receipts import Receipts
    from shared.provenance.verifier import ChainVerifier


class ProvenanceServices:
    """Appends records to audit chains, verifies the chains, and creates proofs."""

    def __init__(
        self, backends: Backends, catalog: CatalogServices, webhooks: WebhookServices, telemetry: TelemetryServices
    ) -> None:
        self._backends = backends
        self._telemetry = telemetry
        self._webhooks = webhooks
        self._settings = backends.settings
        self._catalog = catalog

    @cached_property
    def chain_store(self) -> "ChainStore":
        """Store of the audit chains."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_chain import CosmosChainStore

            return self._backends.register_for_closing(CosmosChainStore(self._backends.cosmos))
        from shared.backends.embedded.provenance import SqliteChainStore

        return self._backends.register_for_closing(
            SqliteChainStore(self._settings.data_dir / "provenance.sqlite", runtime=self._backends.runtime)
        )

    @cached_property
    def chain_log(self) -> "ChainLog":
        """Service that appends records to the audit chains."""
        from shared.provenance.chain_log import ChainLog

        return ChainLog(self.chain_store, self._catalog.load_workspace_id, runtime=self._backends.runtime)

    @cached_property
    def audit_log(self) -> "EventLog":
        """Service that appends audit events to their chains."""
        from shared.provenance.chain_log import EventLog

        return self._backends.register_for_closing(EventLog(self.chain_log))

    @cached_property
    def catalog_service(self) -> "CatalogService":
        """Service that changes the catalog, for example by a workspace document, and appends the audit events."""
        from shared.catalog.service import CatalogService

        return CatalogService(
            self._catalog.store,
            self.audit_log,
            before_enabling=self._reset_connection_statuses,
            on_change=self._invalidate_catalog_cache_and_start_event_sources,
            announce=self._webhooks.announce_query_changes,
            runtime=self._backends.runtime,
        )

    async def _reset_connection_statuses(self, connection_lookups: Collection[str]) -> None:
        from shared.telemetry.connection_status import reset_connection_statuses

        await reset_connection_statuses(self._telemetry.connection_states, connection_lookups)

    def _invalidate_catalog_cache_and_start_event_sources(self) -> None:
        self._catalog.reader.invalidate()
        self._webhooks.start_event_sources()

    @cached_property
    def administration(self) -> "Administration":
        """Service that replaces and removes single items of the catalog."""
        from shared.catalog.administration import Administration

        return Administration(self.catalog_service)

    @cached_property
    def amendments(self) -> "Amendments":
        """Service that creates, approves and rejects amendments."""
        from shared.provenance.amendments import Amendments

        return Amendments(self.chain_log, self.chain_store, runtime=self._backends.runtime)

    @cached_property
    def checkpoints(self) -> "Checkpoints":
        """Service that creates and reads signed checkpoints of audit chains."""
        from shared.provenance.checkpoints import Checkpoints

        return Checkpoints(
            self.chain_store,
            self._checkpoint_store,
            self._note_signer,
            self._catalog.load_workspace_id,
            self.chain_overview,
            issuer=self._settings.get_configured_base_url() or self._settings.token_issuer,
            runtime=self._backends.runtime,
        )

    @cached_property
    def chain_overview(self) -> "ChainOverview":
        """Store of the summaries of all audit chains."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_chain import CosmosChainStore
            from shared.backends.azure.cosmos_overview import CosmosChainOverview

            return CosmosChainOverview(self._backends.cosmos, CosmosChainStore(self._backends.cosmos))
        from shared.backends.embedded.provenance_overview import SqliteChainOverview

        return self._backends.register_for_closing(
            SqliteChainOverview(self._settings.data_dir / "provenance.sqlite", runtime=self._backends.runtime)
        )

    @cached_property
    def overview(self) -> "AuditOverview":
        """Service that lists all audit chains and all pending amendments."""
        from shared.provenance.overview import AuditOverview

        return AuditOverview(self.chain_overview, self.chain_store, self.checkpoints, runtime=self._backends.runtime)

    @cached_property
    def _checkpoint_store(self) -> "CheckpointStore":
        if self._backends.uses_azure:
            from shared.backends.azure.checkpoint_blobs import BlobCheckpointStore

            return BlobCheckpointStore(self._backends.blob_account)
        from shared.backends.embedded.checkpoint_files import FileCheckpointStore

        return FileCheckpointStore(self._settings.data_dir / "checkpoints", runtime=self._backends.runtime)

    @cached_property
    def _note_signer(self) -> "NoteSigner":
        if self._backends.uses_azure:
            from shared.backends.azure.vault_keys import VaultNoteSigner

            return VaultNoteSigner(
                self._backends.key_vault, self._settings.checkpoint_key, runtime=self._backends.runtime
            )
        from shared.backends.embedded.key_files import FileNoteSigner

        folder = self._settings.data_dir
        return FileNoteSigner(folder / "checkpoint-key.pem", folder / "checkpoints", runtime=self._backends.runtime)

    @cached_property
    def proofs(self) -> "Proofs":
        """Service that creates Merkle proofs that a checkpoint covers a record or an earlier checkpoint."""
        from shared.provenance.merkle_proofs import Proofs

        return Proofs(self.chain_store, self.checkpoints.trees, self.checkpoints)

    @cached_property
    def receipts(self) -> "Receipts":
        """Service that issues receipts: proofs that a chain contains a record, or that the chain was only extended."""
        from shared.provenance.receipts import Receipts

        return Receipts(
            self.chain_store, self.checkpoints, self.proofs, self.chain_overview, runtime=self._backends.runtime
        )

    @cached_property
    def verifier(self) -> "ChainVerifier":
        """Service that verifies audit chains, on request and in the background."""
        from shared.provenance.verifier import ChainVerifier

        return ChainVerifier(
            self.chain_store,
            self._catalog.load_workspace_id,
            self.checkpoints,
            self.chain_overview,
            runtime=self._backends.runtime,
        )

    @cached_property
    def background_verification(self) -> "BackgroundVerification":
        """Service that verifies all audit chains in the background."""
        from shared.provenance.background_verification import BackgroundVerification

        return BackgroundVerification(
            self.chain_overview,
            self.verifier,
            self.checkpoints,
            on_broken=self._webhooks.announce_broken_chain,
            runtime=self._backends.runtime,
        )
