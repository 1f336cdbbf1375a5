"""Tests that the emulator and the adapter for Azure Data Explorer reject the same queries."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from shared.backends.azure.kusto import KustoEngine
from shared.catalog.snapshot import Catalog
from shared.errors import WorkspaceError
from shared.warm_queries.service import WarmQueries
from tests.emulators.kusto.endpoints import Endpoint
from tests.unit.shared.backends.azure.kusto_wire import END, PRIMARY
from tests.unit.shared.backends.azure.kusto_wire import Endpoint as DataExplorer
from tests.unit.shared.catalog.restricted_kql import ALLOWED, COMMANDS, REFUSED

RESTRICTIONS = {
    "request_readonly",
    "request_readonly_hardline",
    "request_callout_disabled",
    "request_external_data_disabled",
    "request_external_table_disabled",
    "request_impersonation_disabled",
    "request_remote_entities_disabled",
    "request_sandboxed_execution_disabled",
}
"""Properties of https://learn.microsoft.com/kusto/api/rest/request-properties that restrict the access of a query."""


@pytest.fixture(scope="module")
def data_explorer() -> Iterator[DataExplorer]:
    """Return a fake Data Explorer cluster that accepts every query."""
    with DataExplorer() as running:
        running.set_reply([PRIMARY, END])
        yield running


@asynccontextmanager
async def open_query_service(data_explorer: DataExplorer) -> AsyncIterator[WarmQueries]:
    """Return the query service with the Azure Data Explorer adapter over the fake cluster."""

    async def return_catalog() -> Catalog:
        return Catalog()

    engine = KustoEngine(data_explorer.url, "Telemetry")
    yield WarmQueries(return_catalog, engine, 30)
    await engine.close()


@pytest.mark.parametrize("name", REFUSED)
async def test_emulator_and_azure_adapter_reject_queries_of_other_data(
    endpoint: Endpoint, data_explorer: DataExplorer, name: str
) -> None:
    """If a query reads data outside of the workspace, the emulator rejects it and the adapter does not send it."""
    before = data_explorer.requests
    async with open_query_service(data_explorer) as queries:
        with pytest.raises(WorkspaceError) as refused:
            await queries.execute_ad_hoc(REFUSED[name], None, 10)
    assert refused.value.code == ("QUERY_NOT_READ_ONLY" if name in COMMANDS else "QUERY_INVALID")
    assert data_explorer.requests == before
    assert endpoint.query_error_code(REFUSED[name]).startswith(("BadRequest_", "General_BadRequest"))


@pytest.mark.parametrize("name", ALLOWED)
async def test_allowed_queries_run_in_the_emulator_and_on_data_explorer(
    endpoint: Endpoint, data_explorer: DataExplorer, name: str
) -> None:
    """An allowed query runs in the emulator, and the adapter sends it unchanged, with all restricting options."""
    async with open_query_service(data_explorer) as queries:
        await queries.execute_ad_hoc(ALLOWED[name], None, 10)
    assert data_explorer.asked["csl"] == ALLOWED[name]
    options = json.loads(data_explorer.asked["properties"])["Options"]
    assert {option for option, value in options.items() if value is True} == RESTRICTIONS
    assert options["query_language"] == "kql"
    assert endpoint.query_rows(ALLOWED[name])
