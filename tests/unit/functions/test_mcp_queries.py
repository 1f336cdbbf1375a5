"""Tests of the MCP tools that run warm queries."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from functions.mcp_queries import build_query_tools
from functions.warm_queries import GROUP
from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import Catalog, CatalogEntry

AT = datetime(2026, 1, 5, tzinfo=UTC)
EXECUTE = next(operation for operation in GROUP.operations if operation.name == "execute_warm_query")


def build_query(lookup: str, age_days: int) -> CatalogEntry[WarmQuery]:
    """Return an approved query that was created the given number of days ago."""
    approval = {"approvedBy": "admin@x", "approvedAt": AT}
    query = {"lookup": lookup, "name": f"Query {lookup}", "surface": "hall", "kql": "Telemetry", "approval": approval}
    created_at = AT - timedelta(days=age_days)
    return CatalogEntry(WarmQuery.model_validate(query), created_at, created_at, "editor@x")


@pytest.mark.parametrize(("older", "newer"), [("pump_rig", "pump-rig"), ("pump-rig", "pump_rig")])
def test_the_older_of_two_queries_gets_the_tool_name(older: str, newer: str) -> None:
    """If two queries would have the same tool name, the older query gets it."""
    catalog = Catalog(queries={newer: build_query(newer, 1), older: build_query(older, 2)})
    titles = {name: build().title for name, build in build_query_tools(EXECUTE, catalog).items()}
    assert titles["warm_query_pump_rig"] == f"Query {older}"
    assert f"Query {newer}" in titles.values()


def test_an_argument_with_an_invalid_default_is_required() -> None:
    """A stored default that has not the parameter's type cannot be used, so the tool requires the argument."""
    query = build_query("q", 1)
    defaults = {"invalid": "5.5", "null": None, "valid": 5}
    parameters = [{"name": name, "type": "long", "default": default} for name, default in defaults.items()]
    changed = WarmQuery.model_validate({**query.value.model_dump(by_alias=True), "parameters": parameters})
    tools = build_query_tools(EXECUTE, Catalog(queries={"q": replace(query, value=changed)}))
    assert tools["warm_query_q"]().input_schema["required"] == ["invalid"]
