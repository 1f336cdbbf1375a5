"""Validation of the warm queries (saved KQL queries) in a workspace document by the query engine."""

import asyncio
import math
from collections.abc import Collection, Iterator
from typing import Final

from shared.catalog.document import LoadedDocument
from shared.catalog.models import WarmQuery
from shared.catalog.problems import Violation
from shared.catalog.query_checks import format_kql_error
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.warm_queries.columns import QueryColumns

_AT_ONCE: Final = 4


async def check_document_queries_and_return_outage(
    loaded: LoadedDocument,
    columns: QueryColumns,
    *,
    query_lookups: Collection[str] | None = None,
    max_seconds: float = math.inf,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> WorkspaceError | None:
    """Validate the saved KQL queries of a workspace document with the query engine.

    Return an error if the engine is unavailable or too slow to validate all queries, else None.

    Args:
        loaded: a valid workspace document with positions.
        columns: requests the result columns of a query, so that the engine validates the query.
        query_lookups: lookups (ids in URLs) of the queries to validate; None for all queries.
        max_seconds: time limit; after this number of seconds, no further query is validated.
        runtime: clock of the time limit.

    Raises:
        DocumentError: if the engine rejects queries.
    """
    queries = enumerate(loaded.document.warm_queries)
    wanted = [(index, query) for index, query in queries if query_lookups is None or query.lookup in query_lookups]
    columns.enlarge_cache(len(wanted))
    check = _QueryCheck(columns, iter(wanted), runtime.monotonic() + max_seconds, runtime)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(_AT_ONCE):
            tasks.create_task(check.check_remaining_queries())
    if check.findings:
        raise loaded.build_error_with_positions(check.findings)
    if check.outage is None and check.count < len(wanted):
        detail = (
            f"The query engine validated {check.count} of {len(wanted)} changed queries in {max_seconds:g} seconds."
        )
        return WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", detail)
    return check.outage


class _QueryCheck:
    """Validation of KQL queries by concurrent tasks, which take queries from one iterator and share one result.

    Attributes:
        findings: paths and messages of the rejected queries.
        outage: error of the engine if the engine is unavailable.
        count: number of queries that were validated, including the rejected ones.
    """

    def __init__(
        self, columns: QueryColumns, queries: Iterator[tuple[int, WarmQuery]], ends_at: float, runtime: Runtime
    ) -> None:
        self.findings: list[Violation] = []
        self.outage: WorkspaceError | None = None
        self.count = 0
        self._columns = columns
        self._queries = queries
        self._ends_at = ends_at
        self._runtime = runtime

    async def check_remaining_queries(self) -> None:
        """Validate the KQL queries one by one, until the time limit is reached or the query engine is unavailable."""
        while self.outage is None and self._runtime.monotonic() < self._ends_at:
            found = next(self._queries, None)
            if found is None:
                return
            index, query = found
            try:
                await self._columns.resolve_columns(query)
            except WorkspaceError as error:
                if error.kind is not Kind.INVALID:
                    # The other queries would only wait for the same timeout.
                    self.outage = error
                    return
                self.findings.append((("warmQueries", index, "kql"), format_kql_error(error)))
            self.count += 1
