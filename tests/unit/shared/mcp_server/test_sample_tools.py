"""Tests of the MCP tools of the sample workspace and of a large workspace."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from functions import GROUPS, mcp
from functions.mcp_queries import build_query_tools
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.catalog.document import load_document
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.http.messages import Request
from shared.mcp_server.capabilities import Capabilities
from shared.mcp_server.transport import handle_mcp_request
from shared.runtime import SYSTEM_RUNTIME

ROOT = Path(__file__).parents[4]
AT = datetime(2026, 1, 5, tzinfo=UTC)
ADMIN = Principal("m", "m", "m", frozenset(AccessRight), CredentialKind.JWT, "c", None)
OPERATIONS = {operation.name: operation for group in GROUPS for operation in group.operations}
MAX_BYTES = 30_000


def build_catalog() -> Catalog:
    """Return the catalog of the sample workspace."""
    document = load_document((ROOT / "samples" / "workspace.yaml").read_text(), "workspace.yaml")
    return Catalog(
        version=1,
        connections={one.lookup: CatalogEntry(one, AT, AT, "e") for one in document.connections},
        surfaces={one.lookup: CatalogEntry(one, AT, AT, "e") for one in document.surfaces},
        queries={one.lookup: CatalogEntry(one, AT, AT, "e") for one in document.warm_queries},
    )


@pytest.fixture
async def capabilities(monkeypatch: pytest.MonkeyPatch) -> Capabilities:
    """Return the capabilities of the sample workspace's administrator."""

    async def find_operations(_: Principal) -> Any:
        return OPERATIONS

    monkeypatch.setattr(mcp, "_map_permitted_operations_by_name", find_operations)
    return await mcp.build_capabilities(ADMIN, build_catalog())


async def list_tools(capabilities: Capabilities) -> tuple[list[dict[str, Any]], int]:
    """Return all tools, and the length of the reply that lists them, in bytes."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
    headers = {"host": "h", "content-type": "application/json", "accept": "application/json"}
    request = Request("POST", "/oi-api/mcp", "", headers, body)
    reply = await handle_mcp_request(request, capabilities, ["h"], runtime=SYSTEM_RUNTIME)
    return json.loads(reply.body)["result"]["tools"], len(reply.body)


async def test_tools_of_the_sample_workspace_are_short(capabilities: Capabilities) -> None:
    """The list of all tools of the sample workspace is at most 30 kB long."""
    tools, size = await list_tools(capabilities)
    assert len(tools) == len(capabilities.tools) > 20
    assert size <= MAX_BYTES


async def test_lists_in_results_have_typed_items(capabilities: Capabilities) -> None:
    """The output schema of each tool states the type of the items of each list, for instance of rows and columns."""
    tools, _ = await list_tools(capabilities)
    lists = {
        (tool["name"], name): schema.get("items", {}).get("type")
        for tool in tools
        for name, schema in tool["outputSchema"]["properties"].items()
        if schema.get("type") == "array"
    }
    assert [place for place, kind in lists.items() if kind is None] == []
    assert {name for name, _ in lists} == {tool["name"] for tool in tools} - {"verify_audit_chain"}
    assert lists["warm_query_pressure_5m", "columns"] == lists["warm_query_pressure_5m", "results"] == "object"


def test_tools_of_queries_are_built_when_they_are_read() -> None:
    """Query tools are listed by name, and each is built only when a client requests it."""
    catalog = build_catalog()
    first, second = (build_query_tools(OPERATIONS["execute_warm_query"], catalog) for _ in range(2))
    assert first.keys() == second.keys()
    assert first["warm_query_pressure_5m"]().name == "warm_query_pressure_5m"
    approved = [stored for stored in catalog.queries.values() if stored.value.approval is not None]
    assert len(first) == len(approved) + 1
