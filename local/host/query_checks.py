"""Background check of the workspace's saved queries after the start of the local host.

The query engine determines the columns of each query. Afterwards, lists of queries find the columns in the cache, and
the log contains every query that the engine rejects, before a user runs it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from shared.catalog.document import LoadedDocument
from shared.catalog.models import WarmQuery
from shared.catalog.query_checks import format_kql_error
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.readiness import report_background_work
from shared.warm_queries.columns import QueryColumns
from shared.wiring import Services, services

NAME: Final = "query checks"
MAX_AWAITED_QUERIES: Final = 50
"""Maximum number of queries for whose check the first start waits."""

RETRIES: Final = 3
"""Number of retries for one query while the engine fails."""
RETRY_SECONDS: Final = 5.0

_LOG = get_logger("query-checks")


class QueryChecks:
    """Check of all saved queries of the workspace.

    The check changes nothing, so several hosts can run it at the same time, and a restart repeats an interrupted check.

    Args:
        loaded: workspace document that this start has stored, for line numbers in the log; None at later starts.
        services: returns the services of the app; the check fills their cache of columns.
    """

    def __init__(self, loaded: LoadedDocument | None, services: Callable[[], Services] = services) -> None:
        self._loaded = loaded
        self._services = services

    @property
    def delay_start(self) -> bool:
        """True at the first start with a small workspace: the host then serves requests only after the check."""
        return self._loaded is not None and len(self._loaded.document.warm_queries) <= MAX_AWAITED_QUERIES

    async def run(self) -> None:
        """Check the queries and log every query that the engine rejects; no error ends the host."""
        with report_background_work(NAME):
            try:
                await self._check_queries()
            except Exception:  # noqa: BLE001  the engine and the store may raise any exception
                _LOG.exception("the queries were not checked")

    async def _check_queries(self) -> None:
        queries = await self._list_queries()
        started_at = time.monotonic()
        _LOG.info("checking the queries", extra=fields(queries=len(queries)))
        rejected = 0
        async for index, error in self._find_rejections(queries):
            rejected += 1
            problem = self._describe_rejection(index, queries[index], format_kql_error(error))
            _LOG.warning("a query of the workspace document does not run", extra=fields(problem=problem))
        seconds = round(time.monotonic() - started_at, 2)
        _LOG.info("checked the queries", extra=fields(queries=len(queries), rejected=rejected, seconds=seconds))

    def _describe_rejection(self, index: int, query: WarmQuery, rule: str) -> str:
        """Describe a rejected query for the log: its lookup (short name) or document position, and the rule."""
        if self._loaded is None:
            return f"{query.lookup}: {rule}"
        [problem] = self._loaded.locate([(("warmQueries", index, "kql"), rule)]).problems
        return str(problem)

    async def _find_rejections(self, queries: Sequence[WarmQuery]) -> AsyncIterator[tuple[int, WorkspaceError]]:
        columns = self._services().queries.columns
        columns.reserve(len(queries))
        for index, query in enumerate(queries):
            error = await _check_query(columns, query)
            if error is not None and error.kind is not Kind.INVALID:
                _LOG.warning("the remaining queries are not checked", extra=fields(reason=error.code))
                return
            if error is not None:
                yield index, error

    async def _list_queries(self) -> Sequence[WarmQuery]:
        if self._loaded is not None:
            return self._loaded.document.warm_queries
        return [entry.value for entry in (await self._services().catalog.current()).queries.values()]


async def _check_query(columns: QueryColumns, query: WarmQuery) -> WorkspaceError | None:
    """Return the engine's error for a query, or None if the query is valid.

    Try again while the engine is unavailable.
    """
    error = await columns.check(query)
    for _ in range(RETRIES):
        if error is None or error.kind is Kind.INVALID:
            break
        await asyncio.sleep(RETRY_SECONDS)
        error = await columns.check(query)
    return error
