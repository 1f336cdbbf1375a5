"""Readiness checks of the stores and the query engine."""

import asyncio
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.features import PROVENANCE, Features
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.queries import QueryServices

if TYPE_CHECKING:
    from shared.observability.readiness import Probe


class ReadinessProbes:
    """Builds one cheap readiness check for each store."""

    def __init__(
        self,
        backends: Backends,
        features: Features,
        provenance: ProvenanceServices,
        queries: QueryServices,
        cold_data: ColdDataServices,
    ) -> None:
        self._backends = backends
        self._features = features
        self._provenance = provenance
        self._queries = queries
        self._cold_data = cold_data

    def build_probes_by_name(self) -> "dict[str, Probe]":
        """Return the readiness checks by name.

        The store of rate limits has no check, because its outage blocks no request.
        """
        probes: dict[str, Probe] = {
            "query engine": self._queries.engine.ping,
            "audit log": self._check_audit_log,
            "cold data": self._cold_data.blobs.require_available,
        }
        return probes | (self._build_azure_probes() if self._backends.uses_azure else self._build_file_probes())

    def _build_file_probes(self) -> "dict[str, Probe]":
        """Build the checks of the embedded SQLite files: each tests whether a file can be locked.

        The check of the workspace file also writes, to test the disk.
        """
        from shared.backends.embedded.sqlite_checks import check_file_is_writable, check_write_lock_is_available

        folder = self._backends.settings.data_dir
        return {
            "workspace file": lambda: check_file_is_writable(
                folder / "workspace.sqlite", runtime=self._backends.runtime
            ),
            "telemetry hub": lambda: check_write_lock_is_available(
                folder / "hub.sqlite", runtime=self._backends.runtime
            ),
            "data stores": lambda: check_write_lock_is_available(
                folder / "documents.sqlite", runtime=self._backends.runtime
            ),
        }

    def _build_azure_probes(self) -> "dict[str, Probe]":
        from shared.backends.azure.cosmos_item_store import build_readiness_checks_by_name

        token_key = self._backends.settings.token_key
        probes: dict[str, Probe] = {
            "token key": lambda: self._backends.key_vault.check_key_exists(token_key),
            "checkpoints": self._check_checkpoints,
        }
        return probes | build_readiness_checks_by_name(self._backends.cosmos)

    async def _check_audit_log(self) -> None:
        """Check that an audit chain can be read, if the workspace has an audit log.

        For embedded stores, also check that the SQLite file of the chains can be locked for writing.
        """
        from shared.provenance.ports import ChainKey, Target

        if not await self._features.has_feature(PROVENANCE):
            return
        await self._provenance.chain_store.read_tip(ChainKey(Target.PLATFORM_CONFIG))
        if not self._backends.uses_azure:
            from shared.backends.embedded.sqlite_checks import check_write_lock_is_available

            await check_write_lock_is_available(
                self._backends.settings.data_dir / "provenance.sqlite", runtime=self._backends.runtime
            )

    async def _check_checkpoints(self) -> None:
        """Check the container and the signing key of checkpoints, if the workspace has an audit log."""
        if await self._features.has_feature(PROVENANCE):
            from shared.backends.azure.checkpoint_blobs import NOTES

            key = self._backends.settings.checkpoint_key.partition("/")[0]
            notes = self._backends.build_blob_store(NOTES)
            await asyncio.gather(notes.require_available(), self._backends.key_vault.check_key_exists(key))
