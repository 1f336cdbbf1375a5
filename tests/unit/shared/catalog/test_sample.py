"""The sample workspace that a new data directory starts from."""

import re
from pathlib import Path

import duckdb_kql
import pytest

from shared.catalog.document import load_document
from shared.catalog.models import ConnectionType, Tier, WarmQuery

SAMPLE = Path(__file__).parents[4] / "samples" / "workspace.yaml"
DOCUMENT = load_document(SAMPLE.read_text(encoding="utf-8"), SAMPLE.name)


def test_the_sample_shows_every_part_of_a_workspace() -> None:
    """Each section has something in it, among the team a service and a disabled member."""
    assert DOCUMENT.workspace.id == "plant-a"
    assert (DOCUMENT.tier, DOCUMENT.limits is not None) == (Tier.ENTERPRISE, True)
    assert DOCUMENT.policies.provenance is not None
    assert [member.id for member in DOCUMENT.team if member.service] == ["historian"]
    assert [member.id for member in DOCUMENT.team if not member.enabled] == ["former@plant-a.example"]
    assert {connection.type for connection in DOCUMENT.connections} == set(ConnectionType)
    assert {query.lookup for query in DOCUMENT.warm_queries if query.approval is None} == {"draft-vibration"}
    assert len(DOCUMENT.warm_queries) > 12


def test_the_samples_queries_read_what_its_simulators_send() -> None:
    """A query that names a simulated connection reads only variables that this simulator has."""
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


def test_the_samples_queries_read_connections_of_their_surface() -> None:
    """The connection that a query reads belongs to the surface that the query is on."""
    connections = {surface.lookup: surface.connections for surface in DOCUMENT.surfaces}
    for query in DOCUMENT.warm_queries:
        for lookup in re.findall(r'ConnectionLookup == "([^"]+)"', query.kql):
            assert lookup in connections[query.surface], query.lookup


def test_every_declared_parameter_is_used() -> None:
    """A parameter that the text does not use would be a mistake in the sample."""
    for query in DOCUMENT.warm_queries:
        for parameter in query.parameters:
            assert re.search(rf"\b{parameter.name}\b", query.kql), (query.lookup, parameter.name)


@pytest.mark.parametrize("query", DOCUMENT.warm_queries, ids=lambda query: query.lookup)
def test_the_samples_queries_parse(query: WarmQuery) -> None:
    """Each query's text, behind its declared parameters, is KQL."""
    declared = ", ".join(f"{parameter.name}:{parameter.type}" for parameter in query.parameters)
    text = f"declare query_parameters({declared});\n{query.kql}" if declared else query.kql
    assert duckdb_kql.parse(text).ok
