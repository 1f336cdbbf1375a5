"""Services for the requests of callers: rate limits, idempotency keys, and stored replies to repeated requests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from shared.observability.metrics import count
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices

if TYPE_CHECKING:
    from shared.auth.principals import Principal
    from shared.idempotency.keys import IdempotencyKeys
    from shared.idempotency.replies import IdempotentReplies
    from shared.rate_limits.limiter import RateLimitDecision, RateLimiter
    from shared.rate_limits.ports import LeaseStore


class RateLimitServices:
    """Limits the rate of each caller's requests, as the workspace's tier allows."""

    def __init__(self, backends: Backends, catalog: CatalogServices) -> None:
        self._backends = backends
        self._catalog = catalog

    @cached_property
    def limiter(self) -> "RateLimiter":
        """Rate limiter that counts the requests of each caller."""
        from shared.rate_limits.limiter import RateLimiter

        return self._backends.register_for_closing(RateLimiter(self._lease_store, runtime=self._backends.runtime))

    @cached_property
    def _lease_store(self) -> "LeaseStore":
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore

            return CosmosLeaseStore(self._backends.cosmos)
        from shared.backends.embedded.rate_limits import SqliteLeaseStore

        return SqliteLeaseStore(self._backends.limits_file)

    @asynccontextmanager
    async def admit(self, caller: "Principal") -> "AsyncIterator[RateLimitDecision]":
        """Context manager: yield the decision to admit or reject a request, and count the request until it ends."""
        from shared.rate_limits.models import get_rate_limit_budget

        budget = get_rate_limit_budget(await self._catalog.get_current_catalog())
        async with self.limiter.admit(caller.member_id, budget) as admission:
            if admission.rejection is not None:
                count("workspace.rate_limit.refusals")
            yield admission


class IdempotencyServices:
    """Recognises repeated requests by their Idempotency-Key."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    @cached_property
    def keys(self) -> "IdempotencyKeys":
        """Service that stores and compares idempotency keys."""
        from shared.idempotency.keys import IdempotencyKeys

        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosIdempotencyStore

            return IdempotencyKeys(CosmosIdempotencyStore(self._backends.cosmos), runtime=self._backends.runtime)
        from shared.backends.embedded.idempotency import SqliteIdempotencyStore

        return IdempotencyKeys(SqliteIdempotencyStore(self._backends.workspace_file), runtime=self._backends.runtime)

    @cached_property
    def replies(self) -> "IdempotentReplies":
        """Service that stores replies to requests with an idempotency key."""
        from shared.idempotency.replies import IdempotentReplies

        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_idempotency import CosmosReplyStore

            return IdempotentReplies(CosmosReplyStore(self._backends.cosmos), runtime=self._backends.runtime)
        from shared.backends.embedded.idempotency import SqliteReplyStore

        return IdempotentReplies(SqliteReplyStore(self._backends.workspace_file), runtime=self._backends.runtime)
