"""Wiring: joins domains and adapters; every service is created on first use."""

import asyncio
from functools import cache, cached_property

from shared.observability import logs
from shared.observability.readiness import Probe, Readiness
from shared.settings import settings
from shared.wiring.access import AccessServices, LimitServices
from shared.wiring.background import BackgroundServices
from shared.wiring.documents import DocumentServices
from shared.wiring.queries import GraphQLServices

PROVENANCE = "provenance"
"""Feature that every provenance route requires."""


class Services(BackgroundServices, GraphQLServices, AccessServices, DocumentServices, LimitServices):
    """All services of the app for one set of settings."""

    @cached_property
    def readiness(self) -> Readiness:
        """Checks of the stores and the query engine."""
        return Readiness(self._build_probes)

    def _build_probes(self) -> dict[str, Probe]:
        """Return one cheap check per store; rate limits are omitted, because their outage blocks no request."""
        probes: dict[str, Probe] = {
            "query engine": self.engine.ping,
            "audit log": self._check_audit_log,
            "cold data": self.cold_blobs.check,
        }
        return probes | (self._build_azure_probes() if self.on_azure else self._build_file_probes())

    def _build_file_probes(self) -> dict[str, Probe]:
        """Return checks of write access to the embedded files; one check writes, to test the disk."""
        from shared.backends.embedded.sqlite_checks import check_write, check_write_lock

        folder = self.settings.data_dir
        return {
            "workspace file": lambda: check_write(folder / "workspace.sqlite"),
            "telemetry hub": lambda: check_write_lock(folder / "hub.sqlite"),
            "data stores": lambda: check_write_lock(folder / "documents.sqlite"),
        }

    def _build_azure_probes(self) -> dict[str, Probe]:
        from shared.backends.azure.cosmos_item_store import probes as cosmos_probes

        token_key = self.settings.token_key
        probes: dict[str, Probe] = {
            "token key": lambda: self.key_vault.check(token_key),
            "checkpoints": self._check_checkpoints,
        }
        return probes | cosmos_probes(self.cosmos)

    async def _check_audit_log(self) -> None:
        """Check the catalog and, if the workspace has one, the audit log with a point read.

        For embedded stores, check write access, too.
        """
        from shared.provenance.ports import ChainKey, Target

        if not await self.has_feature(PROVENANCE):
            return
        await self.chain_store.tip(ChainKey(Target.PLATFORM_CONFIG))
        if not self.on_azure:
            from shared.backends.embedded.sqlite_checks import check_write_lock

            await check_write_lock(self.settings.data_dir / "provenance.sqlite")

    async def _check_checkpoints(self) -> None:
        """Check the container and the signing key of checkpoints, if the workspace is audited."""
        if await self.has_feature(PROVENANCE):
            from shared.backends.azure.checkpoint_blobs import NOTES

            key = self.settings.checkpoint_key.partition("/")[0]
            await asyncio.gather(self._build_blob_store(NOTES).check(), self.key_vault.check(key))

    async def require_feature(self, feature: str) -> None:
        """Return if the workspace has a feature.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_NOT_PROVISIONED``.
        """
        from shared.provenance.selection import not_provisioned_error

        if feature == PROVENANCE and not await self.has_feature(feature):
            raise not_provisioned_error()

    async def has_feature(self, feature: str) -> bool:
        """Return whether the workspace has a feature."""
        return feature == PROVENANCE and (await self.catalog.current()).policies.provenance is not None

    async def close(self) -> None:
        """Stop background work and close all created resources."""
        # Background jobs create services while they run, so they must stop before the first resource is closed.
        if "background" in self.__dict__:
            await self.background.close()
        await self._resources.aclose()


@cache
def services() -> Services:
    """Return the services of this process; configures logs and traces on first use."""
    configured = settings()
    logs.add_fields_to_handlers(configured.log_level)
    if configured.application_insights:
        from shared.backends.azure.monitor import start

        start(configured.application_insights, configured.managed_identity_client_id)
    return Services(configured)
