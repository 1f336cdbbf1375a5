"""Wrapper of a KQL query engine that limits the concurrent queries of each principal (user or service)."""

from typing import Final

from shared.fair_use.acting_member import acting_member
from shared.fair_use.principal_slots import PrincipalSlots
from shared.warm_queries.disconnects import cancel_at_disconnect
from shared.warm_queries.instrumented_engine import ClosableEngine
from shared.warm_queries.ports import EngineQuery, EngineResult

RESPONSE_SECONDS: Final = 210
"""Maximum time in seconds for the wait and the query together: the platform ends a request after 230 s."""


class FairEngine:
    """Query engine that runs a limited number of queries of each principal at once; further queries wait in order.

    All running queries share the processors of the engine. Without the limit, a principal with many slow queries would
    use nearly all of the processor time. Queries that no principal has requested, such as those of alert rules, are not
    limited. A query ends when its client disconnects, if the host can detect the disconnection.

    Args:
        engine: engine that executes the queries.
        per_principal: maximum number of queries of one principal that the engine runs concurrently.
    """

    def __init__(self, engine: ClosableEngine, per_principal: int) -> None:
        self._engine = engine
        detail = (
            f"The query engine runs {per_principal} queries of a principal at once, and your earlier queries did not "
            "end in time; retry later."
        )
        self._slots = PrincipalSlots(per_principal, detail)

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Execute a query as soon as fewer than the allowed number of the principal's queries are running.

        Raises:
            WorkspaceError: THROTTLED ``THROTTLED`` if too many earlier queries of the principal were still running
                when the maximum waiting time ended; and the errors of ``QueryEngine.execute``.
        """
        member = acting_member.get()
        with cancel_at_disconnect():
            if not member:
                return await self._engine.execute(query)
            wait_seconds = max(0, min(query.timeout_seconds, RESPONSE_SECONDS - query.timeout_seconds))
            async with self._slots.occupy_slot(member, wait_seconds):
                return await self._engine.execute(query)

    async def ping(self) -> None:
        """Check that the wrapped query engine is reachable."""
        await self._engine.ping()

    async def close(self) -> None:
        """Close the connections of the wrapped query engine."""
        await self._engine.close()
