"""Provenance services: audit chains and audited changes."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices

if TYPE_CHECKING:
    from shared.catalog.service import CatalogService
    from shared.provenance.amendments import Amendments
    from shared.provenance.chain_log import ChainLog, EventLog
    from shared.provenance.chain_trees import Proofs
    from shared.provenance.checkpoint_ports import CheckpointStore, NoteSigner
    from shared.provenance.checkpoints import Checkpoints
    from shared.provenance.ports import ChainStore
    from shared.provenance.verifier import ChainVerifier


class ProvenanceServices:
    """Appends to, verifies and proves audit chains."""

    def __init__(self, backends: Backends, catalog: CatalogServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog

    @cached_property
    def chain_store(self) -> "ChainStore":
        """Store of the audit chains."""
        if self._backends.on_azure:
            from shared.backends.azure.cosmos_chain import CosmosChainStore

            return self._backends.close_at_exit(CosmosChainStore(self._backends.cosmos))
        from shared.backends.embedded.provenance import SqliteChainStore

        return self._backends.close_at_exit(SqliteChainStore(self._settings.data_dir / "provenance.sqlite"))

    @cached_property
    def chain_log(self) -> "ChainLog":
        """Appends to the audit chains."""
        from shared.provenance.chain_log import ChainLog

        return ChainLog(self.chain_store, self._catalog.workspace_id)

    @cached_property
    def audit_log(self) -> "EventLog":
        """Appends audit events."""
        from shared.provenance.chain_log import EventLog

        return self._backends.close_at_exit(EventLog(self.chain_log))

    @cached_property
    def catalog_service(self) -> "CatalogService":
        """Applies workspace documents."""
        from shared.catalog.service import CatalogService

        return CatalogService(self._catalog.store, self.audit_log, on_change=self._catalog.reader.invalidate)

    @cached_property
    def amendments(self) -> "Amendments":
        """Creates, approves and rejects amendments."""
        from shared.provenance.amendments import Amendments

        return Amendments(self.chain_log, self.chain_store)

    @cached_property
    def checkpoints(self) -> "Checkpoints":
        """Creates and reads signed checkpoints."""
        from shared.provenance.checkpoints import Checkpoints

        return Checkpoints(self.chain_store, self._checkpoint_store, self._note_signer, self._catalog.workspace_id)

    @cached_property
    def _checkpoint_store(self) -> "CheckpointStore":
        if self._backends.on_azure:
            from shared.backends.azure.checkpoint_blobs import BlobCheckpointStore

            return BlobCheckpointStore(self._backends.blob_account)
        from shared.backends.embedded.checkpoint_files import FileCheckpointStore

        return FileCheckpointStore(self._settings.data_dir / "checkpoints")

    @cached_property
    def _note_signer(self) -> "NoteSigner":
        if self._backends.on_azure:
            from shared.backends.azure.vault_keys import VaultNoteSigner

            return VaultNoteSigner(self._backends.key_vault, self._settings.checkpoint_key)
        from shared.backends.embedded.key_files import FileNoteSigner

        folder = self._settings.data_dir
        return FileNoteSigner(folder / "checkpoint-key.pem", folder / "checkpoints")

    @cached_property
    def proofs(self) -> "Proofs":
        """Creates proofs for checkpoints."""
        from shared.provenance.chain_trees import Proofs

        return Proofs(self.chain_store, self.checkpoints.trees)

    @cached_property
    def verifier(self) -> "ChainVerifier":
        """Verifies audit chains."""
        from shared.provenance.verifier import ChainVerifier

        return ChainVerifier(self.chain_store, self._catalog.workspace_id, self.checkpoints)
