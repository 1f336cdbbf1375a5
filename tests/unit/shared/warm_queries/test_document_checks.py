"""Tests of validating the queries of a workspace document with the engine."""

import asyncio

import pytest

from shared.catalog.document import load_document_with_positions
from shared.catalog.models import WarmQuery
from shared.catalog.problems import DocumentError
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.document_checks import check_document_queries_and_return_outage
from tests.unit.shared.catalog.documents import PLANT
from tests.virtual_time import VirtualTime

DOCUMENT = load_document_with_positions(PLANT, "w.yaml")
INVALID = WorkspaceError(Kind.INVALID, "QUERY_INVALID", "no such table")
DOWN = WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "down")


class Columns:
    """Fake source of query columns that takes a second per query and rejects some queries."""

    def __init__(self, time: VirtualTime, **errors: WorkspaceError) -> None:
        self.time = time
        self.errors = errors
        self.resolved: list[str] = []

    def enlarge_cache(self, query_count: int) -> None:
        """Do nothing, because this fake needs no reservation."""

    async def resolve_columns(self, query: WarmQuery) -> tuple[()]:
        """Return no columns, or raise the error that the test has set for the query."""
        self.time.advance(1)
        self.resolved.append(query.lookup)
        await asyncio.sleep(0)
        if query.lookup in self.errors:
            raise self.errors[query.lookup]
        return ()


async def check_queries(columns: Columns, **options: object) -> WorkspaceError | None:
    """Validate the queries of the test's workspace document, and return the error if there is one."""
    return await check_document_queries_and_return_outage(DOCUMENT, columns, runtime=columns.time.runtime, **options)  # type: ignore[arg-type]


async def test_valid_queries_have_no_error() -> None:
    """All queries of the document, or only the listed ones, are validated; if all are valid, the result is None."""
    columns = Columns(VirtualTime())
    assert await check_queries(columns) is None
    assert sorted(columns.resolved) == ["q1", "q2"]
    columns.resolved.clear()
    assert await check_queries(columns, query_lookups={"q2"}) is None
    assert columns.resolved == ["q2"]


async def test_a_rejected_query_is_reported_at_its_text() -> None:
    """The error about a rejected query contains the query's field and its line in the workspace document."""
    with pytest.raises(DocumentError) as raised:
        await check_queries(Columns(VirtualTime(), q2=INVALID))
    [problem] = raised.value.problems
    assert (problem.field, problem.message) == ("warmQueries[1].kql", "no such table")
    assert PLANT.splitlines()[problem.line - 1].startswith("  - {lookup: q2")


async def test_an_unresponsive_engine_is_a_separate_error() -> None:
    """If the engine does not respond, the check returns its error, so that the caller can apply the document anyway."""
    assert await check_queries(Columns(VirtualTime(), q1=DOWN)) is DOWN


async def test_a_slow_engine_stops_the_check() -> None:
    """If the engine is slow, the check stops with an error that contains the number of validated queries."""
    error = await check_queries(Columns(VirtualTime()), max_seconds=1)
    assert error is not None
    assert (error.kind, "validated 1 of 2" in error.detail) == (Kind.TIMEOUT, True)
