"""The tools: each is a route of the API with its arguments at the top level, and passes the same door."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

from shared.errors import invalid
from shared.http.messages import Reply, Request, json_bytes
from shared.http.operations import NoBody, NoQuery, Operation
from shared.mcp_server.offers import Outcome, Run, Schema, Tool
from shared.openapi.schemas import inlined, parameters_of

type Ask = Callable[[Request], Awaitable[Reply]]
"""Passes a request through the door as the caller."""

_LISTED: Final = "records"


@dataclass(frozen=True, slots=True)
class RouteTool:
    """A tool over a route.

    Attributes:
        name: the tool's.
        operation: name of the operation.
        title: for people.
        description: for the model.
        path: names of arguments that stand in the path.
        renamed: arguments that the body has under another name, which is taken, too.
    """

    name: str
    operation: str
    title: str
    description: str
    path: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)


ROUTE_TOOLS: Final = (
    RouteTool(
        "list_warm_queries",
        "list_warm_queries",
        "List warm queries",
        "List the workspace's named queries with their KQL, parameters, columns and approval. Drafts cannot be run.",
    ),
    RouteTool(
        "run_warm_query",
        "execute_warm_query",
        "Run a warm query",
        "Run an approved warm query by its lookup or API path. Give its declared parameters under `parameters`.",
        path=("lookup",),
    ),
    RouteTool(
        "run_adhoc_query",
        "execute_ad_hoc",
        "Run an ad-hoc query",
        "Run KQL over the table Telemetry(Timestamp, ConnectionLookup, SurfaceLookups, DeviceId, MessageId, Payload). "
        "Prefer an approved warm query where one fits.",
    ),
    RouteTool(
        "query_audit_events",
        "query_audit_events",
        "Query audit events",
        "Read audit events, newest first. Without scopeKey: the workspace's configuration changes.",
    ),
    RouteTool(
        "verify_audit_chain",
        "verify_audit_chain",
        "Verify an audit chain",
        "Recompute every digest and link of a chain and say whether it is unbroken. It reads the whole chain. "
        "Without scopeKey: the workspace's configuration changes.",
        renamed={"scopeKey": "ScopeKey", "recordId": "RecordID"},
    ),
    RouteTool(
        "list_amendments",
        "query_scope_amendments",
        "List corrections",
        "Read documented corrections of a scope and their approvals, newest first.",
    ),
)


def route_tools(operations: Mapping[str, Operation], ask: Ask) -> Iterable[Tool]:
    """Return the tools over those of a caller's operations that have one."""
    return [_route_tool(spec, operations[spec.operation], ask) for spec in ROUTE_TOOLS if spec.operation in operations]


def _route_tool(spec: RouteTool, operation: Operation, ask: Ask) -> Tool:
    return Tool(
        spec.name,
        spec.title,
        spec.description,
        _takes(spec, operation),
        gives_of(operation),
        _runner(spec, operation, ask),
        also_takes=tuple(spec.renamed.values()),
    )


def _takes(spec: RouteTool, operation: Operation) -> Schema:
    """Return the arguments: path, query and body at one level; the query wins where both name a member."""
    properties: dict[str, Any] = {name: {"type": "string", "minLength": 1} for name in spec.path}
    required = list(spec.path)
    definitions: dict[str, Any] = {}
    if operation.body is not NoBody:
        schema = inlined(operation.body, "validation")
        definitions = dict(schema.get("$defs", {}))
        shown = {theirs: ours for ours, theirs in spec.renamed.items()}
        properties |= {shown.get(name, name): one for name, one in schema.get("properties", {}).items()}
        required += [shown.get(name, name) for name in schema.get("required", [])]
    if operation.query is not NoQuery:
        for parameter in parameters_of(operation.query):
            properties[parameter["name"]] = {
                **parameter["schema"],
                **({"description": parameter["description"]} if "description" in parameter else {}),
            }
            required += [parameter["name"]] if parameter["required"] else []
    if spec.operation == "execute_warm_query":
        properties["parameters"] = {"type": "object", "description": "Values of declared parameters by name."}
    made: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return {**made, "$defs": definitions} if definitions else made


def gives_of(operation: Operation) -> Schema:
    """Return the schema of an operation's JSON answer; an array stands under ``records``, since tools give objects."""
    answer = next(one for one in operation.docs.answers if one.shape is not None)
    schema = inlined(answer.shape, "serialization")
    if schema.get("type") == "object":
        return schema
    definitions = schema.pop("$defs", None)
    made = {
        "type": "object",
        "properties": {_LISTED: schema, "hasMore": {"type": "boolean"}},
        "required": [_LISTED],
    }
    return {**made, "$defs": definitions} if definitions else made


def _runner(spec: RouteTool, operation: Operation, ask: Ask) -> Run:
    in_query = set() if operation.query is NoQuery else {one["name"] for one in parameters_of(operation.query)}

    async def run(arguments: Mapping[str, Any]) -> Outcome:
        given = _given(spec, arguments)
        route = operation.route
        for name in spec.path:
            value = text_of(given.pop(name, ""))
            route = route.replace(f"{{*{name}}}", quote(value, safe="/")).replace(f"{{{name}}}", quote(value, safe=""))
        query = [(name, text_of(given.pop(name))) for name in sorted(in_query & given.keys())]
        if spec.operation == "execute_warm_query":
            query += parameters_text(given.pop("parameters", {}))
        body = b"" if operation.body is NoBody else json_bytes(given)
        return await asked(ask, operation.method, route, query, body)

    return run


def _given(spec: RouteTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are there, by the names of the route.

    Raises:
        WorkspaceError: INVALID; one is given by both of its names.
    """
    for ours, theirs in spec.renamed.items():
        if ours in arguments and theirs in arguments:
            raise invalid(theirs, f"is given as {ours}, too")
    return {spec.renamed.get(name, name): value for name, value in arguments.items() if value is not None}


async def asked(ask: Ask, method: str, route: str, query: Sequence[tuple[str, str]], body: bytes = b"") -> Outcome:
    """Return what a route answers to a caller, as a tool's outcome; its problem document where it refuses."""
    headers = {"content-type": "application/json", "accept": "application/json"}
    reply = await ask(Request(method, f"/{route}", urlencode(query), headers, body))
    content = json.loads(reply.body)
    if reply.status >= 400:  # noqa: PLR2004  the first status of errors
        return Outcome(content, is_error=True)
    if isinstance(content, list):
        more = next((value for name, value in reply.headers.items() if name.lower() == "x-provenance-has-more"), "")
        content = {_LISTED: content, "hasMore": more == "true"}
    return Outcome(content)


def parameters_text(parameters: Any) -> list[tuple[str, str]]:
    """Return declared parameters as the query string has them."""
    members = parameters if isinstance(parameters, dict) else {"": parameters}
    return [(f"p.{name}", text_of(value)) for name, value in members.items()]


def text_of(value: Any) -> str:
    """Return a JSON value as a query string has it: text bare, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
