"""Provenance services: audit chains and audited changes."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.base import CatalogServices

if TYPE_CHECKING:
    from shared.catalog.service import CatalogService
    from shared.idempotency.keys import IdempotencyKeys
    from shared.idempotency.replies import IdempotentReplies
    from shared.provenance.amendments import Amendments
    from shared.provenance.chain_log import ChainLog, EventLog
    from shared.provenance.chain_trees import Proofs
    from shared.provenance.checkpoint_ports import CheckpointStore, NoteSigner
    from shared.provenance.checkpoints import Checkpoints
    from shared.provenance.ports import ChainStore
    from shared.provenance.verifier import ChainVerifier


class ProvenanceServices(CatalogServices):
    """Appends to, verifies and proves audit chains."""

    @cached_property
    def chain_store(self) -> "ChainStore":
        """Store of the audit chains."""
        if self.on_azure:
            from shared.backends.azure.cosmos_chain import CosmosChainStore

            return self.close_at_exit(CosmosChainStore(self.cosmos))
        from shared.backends.embedded.provenance import SqliteChainStore

        return self.close_at_exit(SqliteChainStore(self.settings.data_dir / "provenance.sqlite"))

    @cached_property
    def chain_log(self) -> "ChainLog":
        """Appends to the audit chains."""
        from shared.provenance.chain_log import ChainLog

        return ChainLog(self.chain_store, self._workspace_id)

    @cached_property
    def audit_log(self) -> "EventLog":
        """Appends audit events."""
        from shared.provenance.chain_log import EventLog

        return self.close_at_exit(EventLog(self.chain_log))

    @cached_property
    def catalog_service(self) -> "CatalogService":
        """Applies workspace documents."""
        from shared.catalog.service import CatalogService

        return CatalogService(self.catalog_store, self.audit_log, on_change=self.catalog.invalidate)

    @cached_property
    def amendments(self) -> "Amendments":
        """Creates, approves and rejects amendments."""
        from shared.provenance.amendments import Amendments

        return Amendments(self.chain_log, self.chain_store)

    @cached_property
    def checkpoints(self) -> "Checkpoints":
        """Creates and reads signed checkpoints."""
        from shared.provenance.checkpoints import Checkpoints

        return Checkpoints(self.chain_store, self._checkpoint_store, self._note_signer, self._workspace_id)

    @cached_property
    def _checkpoint_store(self) -> "CheckpointStore":
        if self.on_azure:
            from shared.backends.azure.checkpoint_blobs import BlobCheckpointStore

            return BlobCheckpointStore(self.blob_account)
        from shared.backends.embedded.checkpoint_files import FileCheckpointStore

        return FileCheckpointStore(self.settings.data_dir / "checkpoints")

    @cached_property
    def _note_signer(self) -> "NoteSigner":
        if self.on_azure:
            from shared.backends.azure.vault_keys import VaultNoteSigner

            return VaultNoteSigner(self.key_vault, self.settings.checkpoint_key)
        from shared.backends.embedded.key_files import FileNoteSigner

        folder = self.settings.data_dir
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

        return ChainVerifier(self.chain_store, self._workspace_id, self.checkpoints)

    @cached_property
    def idempotency(self) -> "IdempotencyKeys":
        """Store of idempotency keys."""
        from shared.idempotency.keys import IdempotencyKeys

        if self.on_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosIdempotencyStore

            return IdempotencyKeys(CosmosIdempotencyStore(self.cosmos))
        from shared.backends.embedded.idempotency import SqliteIdempotencyStore

        return IdempotencyKeys(SqliteIdempotencyStore(self._workspace_file))

    @cached_property
    def answers(self) -> "IdempotentReplies":
        """Store of replies to requests with an idempotency key."""
        from shared.idempotency.replies import IdempotentReplies

        if self.on_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosReplyStore

            return IdempotentReplies(CosmosReplyStore(self.cosmos))
        from shared.backends.embedded.idempotency import SqliteReplyStore

        return IdempotentReplies(SqliteReplyStore(self._workspace_file))
