"""Tests of the checks of alert rules against their queries that need no query engine."""

import dataclasses
from typing import Any

import pytest

from shared.catalog.alert_rule_checks import (
    iterate_parameter_and_time_range_errors,
    iterate_query_use_errors,
    list_new_query_uses,
)
from shared.catalog.document import load_document
from shared.catalog.document_plans import plan_document
from shared.catalog.items import ItemKind
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import StoredCatalog
from shared.errors import MAX_LISTED
from tests.unit.shared.catalog.documents import PLANT, apply_to_catalog

RULE = """\
alertRules:
  - lookup: hot
    name: Hot
    severity: critical
    surface: cooling
    kind: threshold
    query: q1
    parameters: {since: 2026-01-01T00:00:00Z}
    condition: {column: Count, operator: gt, value: 5}
    every: PT1M
"""
EMPTY = StoredCatalog(0, ())


def load(*changes: tuple[str, str]) -> WorkspaceDocument:
    """Return the document with the rule, in which texts are replaced."""
    text = PLANT + RULE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return load_document(text, "w.yaml")


def find_errors(
    document: WorkspaceDocument, stored: StoredCatalog = EMPTY, **options: Any
) -> list[tuple[str | int, ...]]:
    """Return the paths of the errors in the new and changed uses of queries."""
    uses = list_new_query_uses(document, stored, plan_document(document, stored).plan.changes)
    return [path for path, _ in iterate_query_use_errors(uses, **options)]


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("{since: 2026-01-01T00:00:00Z}", "{}", ("parameters", "since")),
        ("{since: 2026-01-01T00:00:00Z}", "{since: now}", ("parameters", "since")),
        ("{since: ", '{"a.b[0]": 1, since: ', ("parameters", "a.b[0]")),
        ("query: q1", "query: gone", ("query",)),
        ("kql: Telemetry | count", 'kql: table("Telemetry") | count', ("timeRange",)),
    ],
)
def test_a_rule_must_fit_its_query(old: str, new: str, path: tuple[str, ...]) -> None:
    """Unknown queries, unknown, missing and invalid parameters, and impossible time ranges are errors of the rule."""
    time_range = ("every: PT1M", "every: PT1M\n    timeRange: PT5M")
    assert find_errors(load(time_range)) == []
    assert find_errors(load(time_range, (old, new))) == [("alertRules", 0, *path)]


def test_the_number_of_unknown_parameters_is_an_error_of_the_parameters() -> None:
    """If a rule has more unknown parameters than are listed, the last error states their number."""
    [rule], [query, _] = load().alert_rules, load().warm_queries
    many = rule.model_copy(update={"parameters": {f"p{number}": 1 for number in range(MAX_LISTED + 1)}})
    errors = list(iterate_parameter_and_time_range_errors(many, query, is_query_readable=True))
    assert [path for path, _ in errors[-2:]] == [("parameters", f"p{MAX_LISTED - 1}"), ("parameters",)]


def test_errors_for_callers_who_may_not_read_queries_name_no_parameters() -> None:
    """If the caller may not read queries, errors contain only parameter names of the rule, and nothing of the text.

    Several missing parameters are one error.
    """
    time_range = ("every: PT1M", "every: PT1M\n    timeRange: PT5M")
    misspelt = load(("{since: ", "{sinc: "), time_range, ("kql: Telemetry | count", 'kql: table("Telemetry") | count'))
    uses = list_new_query_uses(misspelt, EMPTY, plan_document(misspelt, EMPTY).plan.changes)
    assert list(iterate_query_use_errors(uses, is_query_readable=False)) == [
        (("alertRules", 0, "parameters", "sinc"), "is not a parameter of this query"),
        (("alertRules", 0, "parameters"), "a required parameter of the query is missing"),
        (("alertRules", 0, "timeRange"), "cannot be applied to this query"),
    ]
    hint = "is not a parameter of this query; did you mean `parameters.since`?"
    assert hint in [message for _, message in iterate_query_use_errors(uses)]
    [rule], [query, _] = misspelt.alert_rules, misspelt.warm_queries
    hidden = query.parameters[1]
    query = query.model_copy(update={"parameters": (hidden, hidden.model_copy(update={"name": "until"}))})
    errors = [path for path, _ in iterate_parameter_and_time_range_errors(rule, query, is_query_readable=False)]
    assert errors == [("parameters", "sinc"), ("parameters",), ("timeRange",)]


def test_a_query_that_need_not_exist_is_not_checked() -> None:
    """A rule over an unknown query has no error if the query may be created later."""
    assert find_errors(load(("query: q1", "query: gone")), must_exist=False) == []


def test_only_new_and_changed_uses_of_queries_are_checked() -> None:
    """A stored rule stays valid after a change of its query or after its removal, unless its use of the query changes.

    A query that the same document changes is checked with its new parameters.
    """
    stored = apply_to_catalog(load())
    changed = ("name: since, type: datetime", "name: until, type: datetime")
    removed = ("lookup: q1", "lookup: q3")
    for change in (changed, removed):
        assert find_errors(load(change), stored) == []
        assert find_errors(load(change, ("name: Hot", "name: Warm")), stored) == []
    other_limit = ("value: 5", "value: 6")
    assert find_errors(load(changed, other_limit), stored) == [
        ("alertRules", 0, "parameters", "since"),
        ("alertRules", 0, "parameters", "until"),
    ]
    assert find_errors(load(removed, other_limit), stored) == [("alertRules", 0, "query")]


def test_a_query_that_this_version_cannot_parse_is_unknown() -> None:
    """A new rule over a stored query of a newer version is invalid, as if the query were missing."""
    stored = apply_to_catalog(load())
    items = tuple(
        dataclasses.replace(item, definition={**item.definition, "newMember": 1})
        if item.kind == ItemKind.WARM_QUERY
        else item
        for item in stored.items
    )
    without_query = load(("value: 5", "value: 6"))
    [use] = list_new_query_uses(
        without_query.model_copy(update={"warm_queries": ()}),
        dataclasses.replace(stored, items=items),
        plan_document(without_query, stored).plan.changes,
    )
    assert use.query is None
