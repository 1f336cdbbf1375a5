"""Rate limit services."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from shared.observability.metrics import count
from shared.wiring.catalog import CatalogServices

if TYPE_CHECKING:
    from shared.auth.principals import Principal
    from shared.backends.embedded.sqlite import SqliteDatabase
    from shared.rate_limits.limiter import RateLimitDecision, RateLimiter
    from shared.rate_limits.ports import LeaseStore


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
        from shared.backends.embedded.rate_limits import PATIENCE_SECONDS, SCHEMA
        from shared.backends.embedded.sqlite import SqliteDatabase

        path = self.settings.data_dir / "rate-limits.sqlite"
        return SqliteDatabase(path, SCHEMA + places.SCHEMA, write_seconds=PATIENCE_SECONDS)

    @asynccontextmanager
    async def limits(self, caller: "Principal") -> "AsyncIterator[RateLimitDecision]":
        """Count a caller's request until it is completed."""
        from shared.rate_limits.models import budget_for

        budget = budget_for(await self.catalog.current())
        async with self.rate_limiter.admit(caller.member_id, budget) as admission:
            if admission.refusal is not None:
                count("workspace.rate_limit.refusals")
            yield admission
