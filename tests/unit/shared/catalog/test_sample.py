"""Tests of the sample workspace, which new data directories contain."""

import re
from pathlib import Path

import duckdb_kql
import pytest

from shared.catalog.document import load_document
from shared.catalog.models import ConnectionType, Tier, WarmQuery

SAMPLE = Path(__file__).parents[4] / "samples" / "workspace.yaml"
DOCUMENT = load_document(SAMPLE.read_text(encoding="utf-8"), SAMPLE.name)


def test_the_sample_document_has_every_kind_of_item() -> None:
    """Each section of the sample has items; the team has a service and a disabled member."""
    assert DOCUMENT.workspace.id == "plant-a"
    assert (DOCUMENT.tier, DOCUMENT.limits is not None) == (Tier.ENTERPRISE, True)
    assert DOCUMENT.policies.provenance is not None
    assert [member.id for member in DOCUMENT.team if member.service] == ["historian"]
    assert [member.id for member in DOCUMENT.team if not member.enabled] == ["former@plant-a.example"]
    assert {connection.type for connection in DOCUMENT.connections} == set(ConnectionType)
    assert {query.lookup for query in DOCUMENT.warm_queries if query.approval is None} == {"draft-vibration"}
    assert len(DOCUMENT.warm_queries) > 12


def test_sample_queries_use_simulated_variables() -> None:
    """A sample query over a simulated connection uses only variables of its simulator."""
    variables = {
        connection.lookup: {variable.name for variable in connection.simulator.variables}
        for connection in DOCUMENT.connections
        if connection.simulator
    }
    checked = 0
    for query in DOCUMENT.warm_queries:
        (lookup,) = re.findall(r'ConnectionLookup == "([^"]+)"', query.kql) or [""]
        read = set(re.findall(r"Payload\.(\w+)", query.kql))
        if lookup:
            assert read <= variables[lookup], query.lookup
            checked += bool(read)
    assert checked >= 8


def test_sample_queries_use_connections_of_their_surface() -> None:
    """The connection of each sample query belongs to the query's surface."""
    connections = {surface.lookup: surface.connections for surface in DOCUMENT.surfaces}
    for query in DOCUMENT.warm_queries:
        for lookup in re.findall(r'ConnectionLookup == "([^"]+)"', query.kql):
            assert lookup in connections[query.surface], query.lookup


def test_sample_queries_use_all_parameters() -> None:
    """The text of a sample query uses each declared parameter."""
    for query in DOCUMENT.warm_queries:
        for parameter in query.parameters:
            assert re.search(rf"\b{parameter.name}\b", query.kql), (query.lookup, parameter.name)


@pytest.mark.parametrize("query", DOCUMENT.warm_queries, ids=lambda query: query.lookup)
def test_sample_queries_are_valid_kql(query: WarmQuery) -> None:
    """Each query with its declared parameters is valid KQL."""
    declared = ", ".join(f"{parameter.name}:{parameter.type}" for parameter in query.parameters)
    text = f"declare query_parameters({declared});\n{query.kql}" if declared else query.kql
    assert duckdb_kql.parse(text).ok
