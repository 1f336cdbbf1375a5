"""Tests of the MCP server with both modes of the official client."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Literal

import httpx
import httpx2
import jsonschema
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from shared.timestamps import format_rfc3339, now
from tests.service.local_service import Service, check_problem, count_rows, wait_until

ADDRESS = "/oi-api/mcp"
METADATA = "/.well-known/oauth-protected-resource/oi-api/mcp"
MODES: tuple[Literal["auto", "legacy"], ...] = ("auto", "legacy")
PLAIN = {
    "list_data_connections",
    "describe_connection",
    "list_surfaces",
    "list_warm_queries",
    "run_warm_query",
    "run_adhoc_query",
    "tail_telemetry",
    "query_audit_events",
    "verify_audit_chain",
    "list_amendments",
    "list_audit_scopes",
    "list_alerts",
    "list_alert_rules",
    "list_pending_decisions",
}
QUERY = {
    "name": "Asked by an assistant",
    "surface": "hall",
    "kql": "print n = n, text = timeRange",
    "parameters": [{"name": "n", "type": "long"}, {"name": "timeRange", "type": "string", "default": "none"}],
}


@asynccontextmanager
async def connect_client(
    service: Service, member: str = "admin@t", scopes: str | None = None, mode: Literal["auto", "legacy"] = "auto"
) -> AsyncIterator[Client]:
    """Connect the official client with a member's token."""
    headers = {"Authorization": service.create_client(member, scopes).headers["Authorization"]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{service.url}{ADDRESS}", http_client=http), mode=mode) as client,
    ):
        yield client


async def list_tools(client: Client) -> dict[str, types.Tool]:
    """Return all tools, from all pages, by name."""
    found: dict[str, types.Tool] = {}
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found |= {tool.name: tool for tool in page.tools}
        cursor = page.next_cursor
        if cursor is None:
            return found


def get_structured_content(result: types.CallToolResult) -> Any:
    """Return the structured content of a successful call; fail if it differs from the text content."""
    assert not result.is_error, result.content
    assert isinstance(result.content[0], types.TextContent)
    assert result.structured_content == json.loads(result.content[0].text)
    assert result.structured_content is not None
    return result.structured_content


@pytest.fixture(scope="module")
def plant(own_module_service: Service) -> Service:
    """Return a service with an approved query that the tests of this module may change."""
    editor, admin = own_module_service.create_client("editor@t"), own_module_service.create_client("admin@t")
    assert editor.put("/oi-api/warm-queries/asked-by", json=QUERY).status_code == 201
    assert admin.post("/oi-api/warm-queries/asked-by/approve").status_code == 200
    return own_module_service


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_follows_its_output_schema(plant: Service, mode: Literal["auto", "legacy"]) -> None:
    """In both modes of the client, every tool is listed, and its structured content follows its output schema."""
    arguments: dict[str, dict[str, Any]] = {
        "run_warm_query": {"lookup": "asked-by", "parameters": {"n": 5}},
        "describe_connection": {"lookup": "pump-rig"},
        "run_adhoc_query": {"query": "print answer = 42"},
        "list_amendments": {"scopeKey": "line-1"},
        "warm_query_asked_by": {"n": 5, "p_timeRange": "all", "limit": 10},
    }
    async with connect_client(plant, mode=mode) as client:
        found = await list_tools(client)
        assert set(found) >= {*PLAIN, "warm_query_asked_by"}
        for name, tool in found.items():
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
            if name in PLAIN or name in arguments:
                content = get_structured_content(await client.call_tool(name, arguments.get(name, {})))
                assert tool.output_schema is not None
                jsonschema.validate(content, tool.output_schema)


async def test_query_tools_have_parameters_as_arguments(plant: Service) -> None:
    """The tool of a warm query has the query's parameters as arguments.

    The parameter `timeRange` becomes `p_timeRange`.
    """
    async with connect_client(plant) as client:
        tool = (await list_tools(client))["warm_query_asked_by"]
        assert set(tool.input_schema["properties"]) == {"n", "p_timeRange", "timeRange", "from", "to", "limit"}
        assert tool.input_schema["required"] == ["n"]
        content = get_structured_content(await client.call_tool("warm_query_asked_by", {"n": 7, "p_timeRange": "x"}))
        assert content["results"] == [{"n": 7, "text": "x"}]
        assert content["governance"]["queryApprovedBy"] == "admin@t"


async def test_each_parameter_of_a_query_is_an_argument_of_its_own(plant: Service) -> None:
    """If a query declares `timeRange` and `p_timeRange`, the argument for `timeRange` has a further prefix."""
    parameters = [
        {"name": "timeRange", "type": "long"},
        {"name": "p_timeRange", "type": "string", "default": "B"},
    ]
    body = {**QUERY, "name": "Both ranges", "parameters": parameters, "kql": "print a = timeRange, b = p_timeRange"}
    reply = plant.create_client("editor@t").put("/oi-api/warm-queries/both-ranges", json=body)
    assert reply.status_code == 201, reply.text
    assert plant.create_client("admin@t").post("/oi-api/warm-queries/both-ranges/approve").status_code == 200
    async with connect_client(plant) as client:
        name = "warm_query_both_ranges"
        schema = (await list_tools(client))[name].input_schema
        assert set(schema["properties"]) == {"p_p_timeRange", "p_timeRange", "timeRange", "from", "to", "limit"}
        assert schema["required"] == ["p_p_timeRange"]
        content = get_structured_content(
            await client.call_tool(name, {"p_p_timeRange": 5, "p_timeRange": "L", "limit": 10})
        )
        assert content["results"] == [{"a": 5, "b": "L"}]
        refused = await client.call_tool(name, {"p_timeRange": "L"})
        assert isinstance(refused.content[0], types.TextContent)
        assert [one["field"] for one in json.loads(refused.content[0].text)["errors"]] == ["p_p_timeRange"]


async def test_a_query_is_a_tool_while_it_is_approved(plant: Service) -> None:
    """A query is listed as a tool after its approval, until its next edit."""
    body = {**QUERY, "name": "Comes and goes", "parameters": [], "kql": "print 1"}
    async with connect_client(plant) as client:
        assert plant.create_client("editor@t").put("/oi-api/warm-queries/comes-goes", json=body).status_code == 201
        assert "warm_query_comes_goes" not in await list_tools(client)
        assert plant.create_client("admin@t").post("/oi-api/warm-queries/comes-goes/approve").status_code == 200
        assert "warm_query_comes_goes" in await list_tools(client)
        assert plant.create_client("editor@t").put("/oi-api/warm-queries/comes-goes", json=body).status_code == 200
        assert "warm_query_comes_goes" not in await list_tools(client)


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        ("Workspace.Mcp.Use", set[str]()),
        ("Workspace.Mcp.Use,Workspace.Provenance.Verify", {"verify_audit_chain"}),
        (
            "Workspace.Mcp.Use,Workspace.Catalog.Read",
            {"list_data_connections", "describe_connection", "list_surfaces", "list_warm_queries"},
        ),
        ("Workspace.Mcp.Use,Workspace.WarmQuery.Execute", {"run_warm_query", "warm_query_asked_by"}),
    ],
)
async def test_the_listed_tools_depend_on_the_rights_of_the_token(
    plant: Service, scopes: str, expected: set[str]
) -> None:
    """With a token, a client can list and call only the tools that the token's access rights permit."""
    async with connect_client(plant, scopes=scopes) as client:
        found = await list_tools(client)
        assert {name for name in found if name in PLAIN or name == "warm_query_asked_by"} == expected
        with pytest.raises(MCPError):
            await client.call_tool("run_adhoc_query", {"query": "print 1"})


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("run_warm_query", {"lookup": "none"}, "WARM_QUERY_NOT_FOUND"),
        ("run_warm_query", {"lookup": "asked-by"}, "INVALID_REQUEST"),
        ("run_adhoc_query", {"query": "nonsense |"}, "QUERY_INVALID"),
        ("run_adhoc_query", {"query": ".drop table Telemetry"}, "QUERY_NOT_READ_ONLY"),
        ("run_adhoc_query", {"query": "print 1", "limit": 0}, "INVALID_REQUEST"),
        ("tail_telemetry", {"connection": "none"}, "CONNECTION_NOT_FOUND"),
        ("tail_telemetry", {"limit": "many"}, "INVALID_REQUEST"),
        ("list_amendments", {}, "SCOPE_KEY_REQUIRED"),
        ("warm_query_asked_by", {"n": "five"}, "INVALID_REQUEST"),
        ("warm_query_asked_by", {"n": 1, "m": 2}, "INVALID_REQUEST"),
        ("verify_audit_chain", {"scope": "line-1"}, "INVALID_REQUEST"),
        ("verify_audit_chain", {"scopekey": None}, "INVALID_REQUEST"),
        ("verify_audit_chain", {"scopeKey": "line-1", "ScopeKey": "line-1"}, "INVALID_REQUEST"),
        ("query_audit_events", {"ScopeKey": "line-1"}, "INVALID_REQUEST"),
        ("list_surfaces", {"limit": 1}, "INVALID_REQUEST"),
        ("tail_telemetry", {"connections": "line-1"}, "INVALID_REQUEST"),
    ],
)
async def test_a_rejected_tool_call_returns_the_problem_document(
    plant: Service, name: str, arguments: dict[str, Any], code: str
) -> None:
    """If a REST route rejects the request of a tool, the tool returns an error with the route's problem document."""
    async with connect_client(plant) as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert isinstance(result.content[0], types.TextContent)
        problem = json.loads(result.content[0].text)
        assert problem["code"] == code
        assert problem["nextCall"].startswith("Call ")


async def test_the_error_about_an_unknown_lookup_lists_the_nearest_names(plant: Service) -> None:
    """The error about an unknown id or tool lists the most similar names, and the tool that lists all names."""
    calls = {
        "run_warm_query": ({"lookup": "askedby"}, "asked-by", "list_warm_queries"),
        "describe_connection": ({"lookup": "pump-rigg"}, "pump-rig", "list_data_connections"),
        "tail_telemetry": ({"surface": "hal"}, "hall", "list_surfaces"),
    }
    async with connect_client(plant) as client:
        for name, (arguments, nearest, lister) in calls.items():
            result = await client.call_tool(name, arguments)
            assert isinstance(result.content[0], types.TextContent)
            problem = json.loads(result.content[0].text)
            assert problem["nearest"][0] == nearest
            assert nearest in problem["detail"]
            assert f"`{nearest}`" in problem["nextCall"]
            assert lister in problem["nextCall"]
        with pytest.raises(MCPError, match=r"warm_query_asked_by.*Call tools/list"):
            await client.call_tool("warm_query_askedby", {})
        with pytest.raises(MCPError, match=r"workspace://surfaces/hall.*Call resources/list"):
            await client.read_resource("workspace://surfaces/hal")


async def test_describe_connection_returns_signals_statistics_and_queries(plant: Service) -> None:
    """The tool for a connection returns its signals, its statistics and the approved queries of its surfaces."""
    signal = {"name": "pressure", "pointer": "/Pressure", "type": "real", "unit": "bar"}
    body = {"name": "Lathe", "type": "CLOUD_EVENT_HUB", "signals": [signal]}
    assert plant.create_client("admin@t").put("/oi-api/connections/lathe", json=body).status_code == 200
    async with connect_client(plant) as client:
        described = get_structured_content(await client.call_tool("describe_connection", {"connection": "lathe"}))
        assert described["signals"] == [{**signal, "description": None, "min": None, "max": None}]
        assert (described["lookup"], described["surfaces"], described["queries"]) == ("lathe", [], [])
        rig = get_structured_content(await client.call_tool("describe_connection", {"lookup": "pump-rig"}))
        assert {"per-minute", "asked-by"} <= set(rig["queries"])
        assert "draft" not in rig["queries"]


async def test_every_tool_argument_has_an_example(plant: Service) -> None:
    """The schema of each argument of each tool has an example in its description."""
    async with connect_client(plant) as client:
        found = await list_tools(client)
    for name, tool in found.items():
        for argument, schema in tool.input_schema["properties"].items():
            assert "for example" in schema["description"], (name, argument)


@pytest.mark.parametrize(
    ("name", "arguments", "failing_arguments"),
    [
        ("warm_query_asked_by", {}, ["n"]),
        ("warm_query_asked_by", {"n": None}, ["n"]),
        ("warm_query_asked_by", {"n": True}, ["n"]),
        ("warm_query_asked_by", {"n": 5.5}, ["n"]),
        ("warm_query_asked_by", {"n": 1, "p_timeRange": ["a"]}, ["p_timeRange"]),
        ("warm_query_asked_by", {"n": 1, "p_timeRange": {"a": 1}}, ["p_timeRange"]),
        ("warm_query_asked_by", {"n": 1, "p_timeRange": 5}, ["p_timeRange"]),
        ("warm_query_asked_by", {"n": 1, "p_timeRange": True}, ["p_timeRange"]),
        ("warm_query_asked_by", {"n": 1, "limit": "5"}, ["limit"]),
        ("warm_query_asked_by", {"n": 1, "limit": True, "timeRange": 5}, ["timeRange", "limit"]),
        ("run_warm_query", {}, ["lookup"]),
        ("run_warm_query", {"lookup": None}, ["lookup"]),
        ("run_warm_query", {"lookup": ""}, ["lookup"]),
        ("run_warm_query", {"lookup": 5}, ["lookup"]),
        ("run_warm_query", {"lookup": "asked-by", "parameters": []}, ["parameters"]),
        ("run_warm_query", {"lookup": "asked-by", "parameters": {"m": None}}, ["parameters.m", "parameters.n"]),
        ("run_warm_query", {"lookup": "asked-by", "parameters": {"n": [1]}}, ["parameters.n"]),
        ("run_warm_query", {"lookup": "asked-by", "parameters": {"n": 1}, "limit": "5"}, ["limit"]),
        ("tail_telemetry", {"minutes": "5", "limit": True, "surface": 1}, ["surface", "minutes", "limit"]),
        ("query_audit_events", {"limit": "5", "scopeKey": 1}, ["limit", "scopeKey"]),
        ("describe_connection", {}, ["lookup"]),
        ("describe_connection", {"lookup": 5}, ["lookup"]),
        ("describe_connection", {"connection": 5}, ["connection"]),
        ("describe_connection", {"lookup": "pump-rig", "connection": "lathe"}, ["connection"]),
        ("describe_connection", {"connection": "lathe", "lookup": "pump-rig"}, ["connection"]),
        ("verify_audit_chain", {"recordId": None}, ["recordId"]),
        ("verify_audit_chain", {"scopeKey": 5, "recordId": "1"}, ["scopeKey", "recordId"]),
        ("verify_audit_chain", {"recordId": "1", "RecordID": "000000000001"}, ["RecordID"]),
        ("verify_audit_chain", {"RecordID": None}, ["RecordID"]),
    ],
)
async def test_the_error_about_tool_arguments_names_each_invalid_argument(
    plant: Service, name: str, arguments: dict[str, Any], failing_arguments: list[str]
) -> None:
    """The error about a missing or ill-typed argument contains the argument's name."""
    async with connect_client(plant) as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert isinstance(result.content[0], types.TextContent)
        refusal = json.loads(result.content[0].text)
        assert refusal["code"] == "INVALID_REQUEST"
        assert [one["field"] for one in refusal["errors"]] == failing_arguments
        assert refusal["detail"] == "; ".join(f"{one['field']}: {one['message']}" for one in refusal["errors"])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("warm_query_asked_by", {"n": 5.0, "p_timeRange": None, "limit": 5.0, "timeRange": None}),
        ("warm_query_asked_by", {"n": "5", "limit": None}),
        ("run_warm_query", {"lookup": "asked-by", "parameters": {"n": 5.0, "timeRange": None}, "limit": 5.0}),
    ],
)
async def test_null_as_tool_argument_selects_the_default(plant: Service, name: str, arguments: dict[str, Any]) -> None:
    """In both query tools, null as an argument selects the default, and a whole number may have the form 5.0."""
    async with connect_client(plant) as client:
        content = get_structured_content(await client.call_tool(name, arguments))
        assert content["results"] == [{"n": 5, "text": "none"}]


@pytest.mark.parametrize("name", ["query_audit_events", "list_amendments"])
async def test_tools_that_read_records_list_ignored_arguments(plant: Service, name: str) -> None:
    """The result of a tool that reads audit records lists the arguments whose invalid or empty values were ignored."""
    async with connect_client(plant) as client:
        schema = (await list_tools(client))[name].output_schema
        assert schema is not None
        assert schema["properties"]["ignored"] == {"type": "array", "items": {"type": "string"}}
        arguments = {"scopeKey": "line-1", "startDate": "2026-11-29T25:00:00Z", "endDate": "x", "limit": 0}
        content = get_structured_content(await client.call_tool(name, {**arguments, "entityType": ""}))
        assert set(content["ignored"]) == {"startDate", "endDate", "limit", "entityType"}
        content = get_structured_content(await client.call_tool(name, {"scopeKey": "line-1"}))
        assert content["ignored"] == []


async def test_the_tool_for_newest_messages_excludes_future_messages(plant: Service) -> None:
    """The tool for the newest messages leaves out messages with a future timestamp."""
    editor = plant.create_client("editor@t")
    messages = [{"messageId": "far", "timestamp": format_rfc3339(now() + timedelta(days=300))}, {"messageId": "near"}]
    assert editor.post("/oi-api/telemetry/lathe", json=messages).status_code == 202
    wait_until(lambda: count_rows(editor, "lathe"), lambda now: now == 2)
    async with connect_client(plant) as client:
        content = get_structured_content(await client.call_tool("tail_telemetry", {"connection": "lathe"}))
        assert [one["MessageId"] for one in content["messages"]] == ["near"]


async def test_the_verify_tool_accepts_both_names_of_its_arguments(plant: Service) -> None:
    """The verify tool accepts its own names for scope and record and those of the REST route, and no other names."""
    event = {"ActionType": "a", "EntityType": "t", "EntityID": "e", "ScopeKey": "by an assistant"}
    assert plant.create_client("editor@t").post("/oi-api/provenance/events", json=event).status_code == 201
    async with connect_client(plant) as client:
        for tool in (await list_tools(client)).values():
            assert tool.input_schema["additionalProperties"] is False
        assert set((await list_tools(client))["verify_audit_chain"].input_schema["properties"]) == {
            "scopeKey",
            "recordId",
            "target",
        }
        for scope, record in (("scopeKey", "recordId"), ("ScopeKey", "RecordID")):
            arguments = {scope: "by an assistant", record: "000000000001"}
            verdict = get_structured_content(await client.call_tool("verify_audit_chain", arguments))
            assert (verdict["Target"], verdict["Valid"], verdict["Empty"]) == ("DomainEvents", True, False)
            assert verdict["Record"]["EntityID"] == "e"
        refused = await client.call_tool("verify_audit_chain", {"scope_key": "by an assistant"})
        assert isinstance(refused.content[0], types.TextContent)
        assert json.loads(refused.content[0].text)["errors"][0]["field"] == "scope_key"


async def test_clients_can_read_resources_and_get_prompts(plant: Service) -> None:
    """Clients can read definitions as MCP resources.

    A prompt contains the values of its arguments; a prompt without its required arguments is rejected.
    """
    async with connect_client(plant) as client:
        listed = {resource.uri: resource for resource in (await client.list_resources()).resources}
        read = await client.read_resource("workspace://warm-queries/asked-by")
        assert "workspace://surfaces/hall" in {str(uri) for uri in listed}
        assert isinstance(read.contents[0], types.TextResourceContents)
        assert json.loads(read.contents[0].text)["kql"] == QUERY["kql"]
        with pytest.raises(MCPError):
            await client.read_resource("workspace://warm-queries/none")
        prompts = (await client.list_prompts()).prompts
        assert len(prompts) == 4
        for prompt in prompts:
            given = {one.name: f"<{one.name}>" for one in prompt.arguments or [] if one.required}
            message = (await client.get_prompt(prompt.name, given)).messages[0].content
            assert isinstance(message, types.TextContent)
            assert all(value in message.text for value in given.values())
            with pytest.raises(MCPError):
                await client.get_prompt(prompt.name, {})


def test_the_mcp_server_rejects_invalid_credentials_and_methods(service: Service) -> None:
    """The MCP server returns 401 without a token or with an API key, 403 without the right, and 405 for GET."""
    anonymous = service.create_anonymous_client()
    refused = anonymous.post(ADDRESS, json={})
    check_problem(refused, 401, "UNAUTHENTICATED")
    address = refused.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
    assert httpx.get(address, trust_env=False).json()["resource"] == f"{service.url}{ADDRESS}"
    check_problem(
        service.create_anonymous_client(bearer=service.read_api_key("viewer@t")).post(ADDRESS, json={}),
        401,
        "UNAUTHENTICATED",
    )
    check_problem(
        service.create_client("viewer@t", scopes="Workspace.Catalog.Read").post(ADDRESS, json={}),
        403,
        "ACCESS_RIGHT_MISSING",
    )
    by_get = service.create_client("viewer@t").get(ADDRESS)
    assert (by_get.status_code, by_get.headers["allow"]) == (405, "POST")


def test_mcp_requests_with_an_unknown_host_or_origin_are_rejected(service: Service) -> None:
    """A request with an unknown Host or Origin header is rejected even with a valid token."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    caller = service.create_client("viewer@t")
    assert caller.post(ADDRESS, json=ping).json()["result"] == {}
    check_problem(caller.post(ADDRESS, json=ping, headers={"Host": "evil.example"}), 421, "PROTOCOL_REFUSED")
    check_problem(caller.post(ADDRESS, json=ping, headers={"Origin": "https://evil.example"}), 403, "PROTOCOL_REFUSED")
    check_problem(
        caller.post(ADDRESS, content=b"ping", headers={"Content-Type": "text/plain"}), 400, "PROTOCOL_REFUSED"
    )
    anonymous = service.create_anonymous_client()
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "xlocalhost:1"):
        for reply in (anonymous.post(ADDRESS, headers={"Host": host}), anonymous.get(METADATA, headers={"Host": host})):
            check_problem(reply, 421, "PROTOCOL_REFUSED")
            assert "evil" not in f"{reply.headers}{reply.text}"


@pytest.mark.parametrize("revision", ["", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "body",
    [
        b"ping",
        b"",
        b" ",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":{"b":1,"b":1}}}}',
        rb'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":1,"\u0061":1}}}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":-Infinity}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":1e999}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":' + b"[" * 150 + b"]" * 150 + b"}}}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"\xff"}}}',
        rb'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"\ud800"}}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    ],
)
def test_invalid_json_causes_a_json_rpc_parse_error(service: Service, body: bytes, revision: str) -> None:
    """A body with JSON that REST routes reject gets a JSON-RPC parse error, in every revision of the MCP protocol."""
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": revision, "Mcp-Method": "ping"}
    reply = service.create_client("viewer@t").post(
        ADDRESS, content=body, headers={name: value for name, value in headers.items() if value}
    )
    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/json")
    document = reply.json()
    assert (document["jsonrpc"], document["id"], document["error"]["code"]) == ("2.0", None, -32700)
    assert document["error"]["message"].startswith("Parse error: ")


def test_an_mcp_body_over_the_size_limit_gets_413(service: Service) -> None:
    """A body over the size limit gets 413, as on REST routes."""
    check_problem(
        service.create_client("viewer@t").post(ADDRESS, content=b" " * (1024 * 1024 + 1)), 413, "BODY_TOO_LARGE"
    )


def test_a_406_reply_has_a_json_rpc_error(service: Service) -> None:
    """A client that does not accept JSON gets a 406 reply with a JSON-RPC error."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    reply = service.create_client("viewer@t").post(ADDRESS, json=ping, headers={"Accept": "text/html"})
    assert (reply.status_code, reply.headers["content-type"]) == (406, "application/json")
    assert reply.json()["jsonrpc"] == "2.0"
    assert reply.json()["error"]["message"]
