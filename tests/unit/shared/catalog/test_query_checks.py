"""Tests of the rules for definitions of warm queries."""

from typing import Any

import pytest

from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.query_checks import (
    check_api_paths,
    check_declared_parameters,
    check_query_names,
    check_query_text,
    find_api_path_error,
)


def build_query(lookup: str, **members: Any) -> WarmQuery:
    """Return a warm query."""
    return WarmQuery.model_validate(
        {"lookup": lookup, "name": f"query {lookup}", "surface": "s", "kql": "T", **members}
    )


@pytest.mark.parametrize(
    ("path", "is_valid"),
    [("a/b", True), ("approve", True), ("a//b", False), ("a/../b", False), ("./a", False), ("a/approve", False)],
)
def test_an_api_path_that_clients_would_change_is_rejected(path: str, *, is_valid: bool) -> None:
    """An API path is rejected if clients would change it or if it equals the route of approvals."""
    assert (find_api_path_error(path) is None) is is_valid


def test_an_api_path_belongs_to_one_query() -> None:
    """The API path of a query must differ from paths and lookups (ids in URLs) of all other queries."""
    queries = [
        build_query("a", apiPath="x"),
        build_query("b", apiPath="x"),
        build_query("c", apiPath="a"),
        build_query("d", apiPath="d"),
    ]
    found = list(check_api_paths(list(enumerate(queries))))
    assert found == [
        (("warmQueries", 1, "apiPath"), "is already the apiPath of warmQueries[0]"),
        (("warmQueries", 2, "apiPath"), "is already the lookup of warmQueries[0]"),
    ]


def test_a_name_is_not_the_lookup_or_path_of_another_query() -> None:
    """A query's name must differ from lookup and path of other queries, because AI assistants call queries by name."""
    queries = [build_query("a", apiPath="x"), build_query("b", name="a"), build_query("c", name="x")]
    assert list(check_query_names(list(enumerate(queries)))) == [
        (("warmQueries", 1, "name"), "is already the lookup of warmQueries[0]"),
        (("warmQueries", 2, "name"), "is already the apiPath of warmQueries[0]"),
    ]


def test_a_query_text_that_changes_data_is_rejected() -> None:
    """A query text that contains a management command is rejected with the path of the text."""
    [(path, _)] = check_query_text(("warmQueries", 0), build_query("a", kql=".drop table Telemetry"))
    assert path == ("warmQueries", 0, "kql")
    assert list(check_query_text((), build_query("a", kql="Telemetry | count"))) == []


def test_parameters_have_unique_names_and_fitting_defaults() -> None:
    """Parameters have unique names, and the default of an optional parameter must have its type."""
    declared = [
        {"name": "a", "type": "long"},
        {"name": "a", "type": "string", "default": "x"},
        {"name": "b", "type": "datetime", "default": "yesterday"},
    ]
    parameters = [QueryParameter.model_validate(each) for each in declared]
    found = [path for path, _ in check_declared_parameters(("p",), parameters)]
    assert found == [("p", 1, "name"), ("p", 2, "default")]
