"""The one place that joins domains and adapters; everything is made on first use."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache

from shared import logs
from shared.settings import settings
from shared.wiring.access import AccessServices
from shared.wiring.documents import DocumentServices
from shared.wiring.downloads import DownloadServices
from shared.wiring.graphql import GraphQLServices
from shared.wiring.limits import LimitServices
from shared.wiring.live_stream import LiveStreamServices

PROVENANCE = "provenance"
"""The feature that every provenance route needs."""

type Probe = Callable[[], Awaitable[None]]

_LOG = logs.logger("readiness")
READY_SECONDS = 5.0
"""How long each store has to answer."""

_CLOSED_IN_ORDER = (
    "authenticator",
    "sender",
    "message_service",
    "cold_blobs",
    "download_blobs",
    "engine",
    "connection_states",
    "_cosmos_containers",
    "_data_accounts",
    "_account_file",
    "audit_log",
    "chain_store",
    "_limits_file",
    "_workspace_file",
    "cosmos",
    "blob_account",
    "key_vault",
)


class Services(LiveStreamServices, GraphQLServices, AccessServices, DownloadServices, DocumentServices, LimitServices):
    """Every service of the app, wired for one set of settings."""

    async def failing(self) -> list[str]:
        """Return the names of stores that do not answer, or take no writes where that costs little to try."""
        probes = self._probes()
        answered = await asyncio.gather(*(_answers(name, probe) for name, probe in probes.items()))
        return [name for name, whether in zip(probes, answered, strict=True) if not whether]

    def _probes(self) -> dict[str, Probe]:
        """Return one cheap call for each store; those of rate limits are left out, since they hold up nobody."""
        probes: dict[str, Probe] = {
            "query engine": self.engine.ping,
            "audit log": self._audit_log_answers,
            "cold data": self.cold_blobs.check,
        }
        if not self.on_azure:
            return probes | {"workspace file": self._workspace_file.check}
        from shared.backends.azure.cosmos_state import probes as cosmos_probes

        token_key = self.settings.token_key
        probes |= {"token key": lambda: self.key_vault.check(token_key), "checkpoints": self._checkpoints_answer}
        return probes | cosmos_probes(self.cosmos)

    async def _audit_log_answers(self) -> None:
        """Return when the catalog answers, and the audit log of a workspace that has one: one point read."""
        from shared.provenance.ports import ChainKey, Target

        if await self.has_feature(PROVENANCE):
            await self.chain_store.tip(ChainKey(Target.PLATFORM_CONFIG))

    async def _checkpoints_answer(self) -> None:
        """Return when there is what checkpoints of an audited workspace need: their container and their key."""
        if await self.has_feature(PROVENANCE):
            from shared.backends.azure.checkpoint_blobs import NOTES

            key = self.settings.checkpoint_key.partition("/")[0]
            await asyncio.gather(self._blobs(NOTES).check(), self.key_vault.check(key))

    async def require_feature(self, feature: str) -> None:
        """Return when the workspace has a feature.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_NOT_PROVISIONED``.
        """
        from shared.provenance.selection import not_provisioned

        if feature == PROVENANCE and not await self.has_feature(feature):
            raise not_provisioned()

    async def has_feature(self, feature: str) -> bool:
        """Return whether the workspace has a feature."""
        return feature == PROVENANCE and (await self.catalog.current()).policies.provenance is not None

    async def close(self) -> None:
        """Finish what runs and close whatever was opened; for short-lived processes and clean stops."""
        for name in _CLOSED_IN_ORDER:
            if name in self.__dict__:
                await self.__dict__[name].close()


async def _answers(name: str, probe: Probe) -> bool:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await probe()
    except Exception as error:  # noqa: BLE001  whatever it is, it is why the service is not ready
        _LOG.warning("not ready", extra=logs.fields(store=name, error=type(error).__name__))
        return False
    return True


@cache
def services() -> Services:
    """Return the services of this process; what they log and trace is told from now on."""
    configured = settings()
    logs.adopt(configured.log_level)
    if configured.application_insights:
        from shared.backends.azure.monitor import start

        start(configured.application_insights, configured.managed_identity_client_id)
    return Services(configured)
