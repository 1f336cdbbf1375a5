"""Tests of the checks of a workspace document with the query engine."""

from types import SimpleNamespace
from typing import Any

import pytest

from functions import workspace_document
from functions.workspace_document import _check_with_engine_and_list_warnings
from shared.errors import Kind, WorkspaceError

DOCUMENT: Any = None
USE = SimpleNamespace(query=object())


@pytest.mark.parametrize("raises_errors", [True, False])
@pytest.mark.parametrize(
    ("kind", "uses", "fields", "checks"),
    [
        (Kind.UNAVAILABLE, (), ["warmQueries"], 1),
        (Kind.UNAVAILABLE, (SimpleNamespace(query=None),), ["warmQueries"], 1),
        (Kind.UNAVAILABLE, (USE,), ["warmQueries", "alertRules"], 1),
        (Kind.TIMEOUT, (USE,), ["warmQueries", "alertRules"], 2),
    ],
)
async def test_columns_are_not_checked_while_the_engine_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    uses: tuple[SimpleNamespace, ...],
    fields: list[str],
    checks: int,
    *,
    raises_errors: bool,
) -> None:
    """If the engine is unavailable for queries, columns are not checked, with a warning if there are rules to check.

    After a timeout of the queries, the columns are checked.
    """
    outage = WorkspaceError(kind, "QUERY_ENGINE_UNAVAILABLE", "down")
    plan: Any = SimpleNamespace(plan=SimpleNamespace(changes=()), query_uses=uses)
    performed = 0

    async def return_outage(*_: Any, **__: Any) -> WorkspaceError:
        nonlocal performed
        performed += 1
        return outage

    monkeypatch.setattr(
        workspace_document, "services", lambda: SimpleNamespace(queries=SimpleNamespace(columns=None), runtime=None)
    )
    monkeypatch.setattr(workspace_document, "check_document_queries_and_return_outage", return_outage)
    monkeypatch.setattr(workspace_document, "check_document_rules_and_return_outage", return_outage)
    found = await _check_with_engine_and_list_warnings(DOCUMENT, plan, 1, frozenset(), raises_errors=raises_errors)
    assert ([each["field"] for each in found], performed) == (fields, checks)
