"""Validation of the columns that alert rules of a workspace document use, by the query engine."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple, TypeGuard

from shared.alerts.evaluation import iterate_column_errors
from shared.catalog.alert_rule_checks import QueryUse
from shared.catalog.document import LoadedDocument
from shared.catalog.models import WarmQuery
from shared.catalog.problems import MAX_PROBLEMS, Violation
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.warm_queries.columns import ColumnsOrError, QueryColumns


async def check_document_rules_and_return_outage(
    loaded: LoadedDocument,
    uses: Iterable[QueryUse],
    columns: QueryColumns,
    *,
    is_query_readable: bool = True,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> WorkspaceError | None:
    """Check that the queries of a document's alert rules have the columns that the rules use.

    Wait a few seconds for the query engine. Return an error if the engine is unavailable, or too slow to return the
    columns of all queries; else return None.

    Args:
        loaded: a valid workspace document with positions.
        uses: alert rules that the document adds, or whose use of a query it changes; each with its query.
        columns: gets the result columns of queries from the engine.
        is_query_readable: whether the caller may read queries; if not, the errors contain nothing of their texts and
            columns.
        runtime: runs work in worker threads.

    Raises:
        DocumentError: if a query lacks a column of its rule, or if the engine rejects the query of a rule.
    """
    checked = [(use, use.query) for use in uses if use.query is not None]
    results = await columns.resolve_all_columns_or_errors([query for _, query in checked])
    known = [
        _RuleColumns(use, query, result)
        for (use, query), result in zip(checked, results, strict=True)
        if not _is_outage(result)
    ]
    text_size = sum(len(each.query.kql) for each in known)
    if findings := await runtime.run_in_thread_if_large(
        text_size, _list_column_violations, known, is_query_readable=is_query_readable
    ):
        raise loaded.build_error_with_positions(findings)
    return next((result for result in results if _is_outage(result)), None)


class _RuleColumns(NamedTuple):
    """Alert rule with its query; ``result`` has the columns of the query, or the error if the engine rejects it."""

    use: QueryUse
    query: WarmQuery
    result: ColumnsOrError


def _is_outage(result: ColumnsOrError) -> TypeGuard[WorkspaceError]:
    return isinstance(result, WorkspaceError) and result.kind is not Kind.INVALID


def _list_column_violations(rule_columns: Sequence[_RuleColumns], *, is_query_readable: bool) -> list[Violation]:
    found = (
        ((*use.path, *path), message)
        for use, query, result in rule_columns
        for path, message in iterate_column_errors(use.rule, query, result, is_query_readable=is_query_readable)
    )
    return list(islice(found, MAX_PROBLEMS))
