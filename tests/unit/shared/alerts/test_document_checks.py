"""Tests of checking the columns that alert rules of a workspace document use."""

from collections.abc import Sequence
from typing import Any

import pytest

from shared.alerts.document_checks import check_document_rules_and_return_outage
from shared.catalog.alert_rule_checks import list_new_query_uses
from shared.catalog.document import load_document_with_positions
from shared.catalog.document_plans import plan_document
from shared.catalog.models import WarmQuery
from shared.catalog.ports import StoredCatalog
from shared.catalog.problems import DocumentError
from shared.errors import Kind, WorkspaceError
from shared.warm_queries.columns import ColumnsOrError
from shared.warm_queries.ports import Column
from tests.unit.shared.catalog.documents import PLANT

RULE = """\
  - lookup: {query}
    name: {query}
    severity: info
    surface: cooling
    kind: threshold
    query: {query}
    condition: {{column: {column}, operator: gt, value: 5}}
    groupBy: [device]
    every: PT1M
"""
TEXT = PLANT + "alertRules:\n" + RULE.format(query="q1", column="total") + RULE.format(query="q2", column="value")
DOCUMENT = load_document_with_positions(TEXT, "w.yaml")
USES = list_new_query_uses(
    DOCUMENT.document, StoredCatalog(0, ()), plan_document(DOCUMENT.document, StoredCatalog(0, ())).plan.changes
)
COLUMNS = (Column("value", "real"), Column("device", "string"))
DOWN = WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "down")


class Columns:
    """Fake source of the columns of queries, or of the engine's errors."""

    def __init__(self, **results: ColumnsOrError) -> None:
        self.results = results

    async def resolve_all_columns_or_errors(self, queries: Sequence[WarmQuery]) -> list[ColumnsOrError]:
        """Return the result that the test has set for each query."""
        return [self.results.get(query.lookup, COLUMNS) for query in queries]


async def check(*, is_query_readable: bool = True, **results: ColumnsOrError) -> WorkspaceError | None:
    """Check the rules of the document, with these results of their queries."""
    columns: Any = Columns(**results)
    return await check_document_rules_and_return_outage(DOCUMENT, USES, columns, is_query_readable=is_query_readable)


async def test_an_unknown_column_is_reported_at_its_place() -> None:
    """An unknown column, or a query that the engine rejects, is an error of the rule with its place in the document."""
    rejection = WorkspaceError(Kind.INVALID, "QUERY_INVALID", "no such table")
    with pytest.raises(DocumentError) as caught:
        await check(q2=rejection)
    found = [(problem.field, TEXT.splitlines()[problem.line - 1].strip()) for problem in caught.value.problems]
    assert found == [
        ("alertRules[0].condition.column", "condition: {column: total, operator: gt, value: 5}"),
        ("alertRules[1].query", "query: q2"),
    ]
    assert "its columns are value, device" in caught.value.problems[0].message


async def test_errors_for_callers_who_may_not_read_queries_name_no_columns() -> None:
    """If the caller may not read queries, the error does not list the columns of the query."""
    with pytest.raises(DocumentError) as caught:
        await check(is_query_readable=False)
    assert [problem.message for problem in caught.value.problems] == ["is not a column of the query"]


async def test_an_unavailable_engine_is_a_separate_result() -> None:
    """If the engine does not return the columns of a query, the other rules are checked, and its error is returned."""
    with pytest.raises(DocumentError):
        await check(q2=DOWN)
    total = (*COLUMNS, Column("total", "real"))
    assert await check(q1=total, q2=DOWN) is DOWN
    assert await check(q1=total) is None
