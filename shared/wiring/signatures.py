"""Services of electronic signatures: signing, lock-outs, and the list of all signatures."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.webhooks import WebhookServices

if TYPE_CHECKING:
    from shared.provenance.ports import ChainKey
    from shared.signatures.attempt_counter import AttemptCounter
    from shared.signatures.listing import SignatureList
    from shared.signatures.ports import SignatureIndex, SignatureStore
    from shared.signatures.signing import Signing


class SignatureServices:
    """Checks who may sign decisions, counts refused attempts, and lists all signatures."""

    def __init__(
        self, backends: Backends, catalog: CatalogServices, provenance: ProvenanceServices, webhooks: WebhookServices
    ) -> None:
        self._backends = backends
        self._catalog = catalog
        self._provenance = provenance
        self._webhooks = webhooks

    @cached_property
    def signing(self) -> "Signing":
        """Service that checks who may sign a decision."""
        from shared.signatures.sign_ins import SignInRegistry
        from shared.signatures.signing import Signing

        runtime = self._backends.runtime
        return Signing(
            self.attempts,
            SignInRegistry(self._signature_store, self._is_decision_appended, runtime=runtime),
            runtime=runtime,
        )

    @cached_property
    def attempts(self) -> "AttemptCounter":
        """Service that counts refused attempts to sign."""
        from shared.signatures.attempt_counter import AttemptCounter

        return AttemptCounter(
            self._signature_store,
            self._provenance.audit_log,
            self._catalog.is_workspace_audited,
            self._webhooks.announce_lock_out,
            runtime=self._backends.runtime,
        )

    @cached_property
    def list(self) -> "SignatureList":
        """Service that lists all signatures."""
        from shared.signatures.listing import SignatureList

        return SignatureList(self._signature_index, self._provenance.chain_store, runtime=self._backends.runtime)

    @cached_property
    def _signature_index(self) -> "SignatureIndex":
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_signatures import CosmosSignatureIndex

            return CosmosSignatureIndex(self._backends.cosmos)
        from shared.backends.embedded.signatures import SqliteSignatureIndex

        return SqliteSignatureIndex(self._backends.workspace_file)

    @cached_property
    def _signature_store(self) -> "SignatureStore":
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_signatures import CosmosSignatureStore

            return CosmosSignatureStore(self._backends.cosmos)
        from shared.backends.embedded.signatures import SqliteSignatureStore

        return SqliteSignatureStore(self._backends.workspace_file)

    async def _is_decision_appended(self, chain: "ChainKey", append_id: str) -> bool:
        """Return whether a decision was appended to its audit chain, or will be appended from the catalog's outbox."""
        from shared.provenance.ports import LookupField

        pending = await self._catalog.store.list_pending_events()
        if any(event.append_id == append_id for event in pending):
            return True
        return bool(await self._provenance.chain_store.find(chain, LookupField.APPEND_ID, [append_id]))
