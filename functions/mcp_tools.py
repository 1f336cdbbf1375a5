"""The tools: each is a route of the API with its arguments at the top level, and passes the same door."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from shared.errors import FieldError, invalid, invalid_fields
from shared.http.messages import Reply, Request, json_bytes
from shared.http.operations import NoBody, NoQuery, Operation
from shared.mcp_server.capabilities import Run, Schema, Tool, ToolResult
from shared.openapi.schemas import inline_schema, list_parameters

type Ask = Callable[[Request], Awaitable[Reply]]
"""Passes a request through the door as the caller."""

_LISTED: Final = "records"
_EXPECTED: Final = {"string": "text is expected", "integer": "a whole number is expected"}


@dataclass(frozen=True, slots=True)
class RouteTool:
    """A tool over a route.

    Attributes:
        name: the tool's.
        operation: name of the operation.
        title: for people.
        description: for the model.
        renamed: arguments that the body has under another name, which is taken, too.
        telling: members of the body that ask for something by being there, whatever they hold.
    """

    name: str
    operation: str
    title: str
    description: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    telling: frozenset[str] = frozenset()


ROUTE_TOOLS: Final = (
    RouteTool(
        "list_warm_queries",
        "list_warm_queries",
        "List warm queries",
        "List the workspace's named queries with their KQL, parameters, columns and approval. Drafts cannot be run.",
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
        telling=frozenset({"RecordID"}),
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
        hidden_arguments=tuple(spec.renamed.values()),
    )


def _takes(spec: RouteTool, operation: Operation) -> Schema:
    """Return the arguments: query and body at one level; the query wins where both name a member."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    if operation.body is not NoBody:
        schema = inline_schema(operation.body, "validation")
        definitions = dict(schema.get("$defs", {}))
        shown = {theirs: ours for ours, theirs in spec.renamed.items()}
        properties |= {shown.get(name, name): one for name, one in schema.get("properties", {}).items()}
        required += [shown.get(name, name) for name in schema.get("required", [])]
    if operation.query is not NoQuery:
        for parameter in list_parameters(operation.query):
            properties[parameter["name"]] = {
                **parameter["schema"],
                **({"description": parameter["description"]} if "description" in parameter else {}),
            }
            required += [parameter["name"]] if parameter["required"] else []
    made: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return {**made, "$defs": definitions} if definitions else made


def gives_of(operation: Operation) -> Schema:
    """Return the schema of an operation's JSON answer; an array stands under ``records``, since tools give objects."""
    answer = next(one for one in operation.docs.answers if one.shape is not None)
    schema = inline_schema(answer.shape, "serialization")
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
    listed = [] if operation.query is NoQuery else list_parameters(operation.query)
    in_query = {one["name"]: one["schema"].get("type", "string") for one in listed}

    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        given = _given(spec, arguments)
        query = query_text({name: given.pop(name) for name in sorted(in_query.keys() & given.keys())}, in_query)
        body = b"" if operation.body is NoBody else json_bytes(given)
        return await asked(ask, operation.method, operation.route, query, body)

    return run


def _given(spec: RouteTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are there, by the names of the route.

    Raises:
        WorkspaceError: INVALID; one is given by both of its names.
    """
    for ours, theirs in spec.renamed.items():
        if ours in arguments and theirs in arguments:
            raise invalid(theirs, f"is given as {ours}, too")
    given = {spec.renamed.get(name, name): value for name, value in arguments.items()}
    return {name: value for name, value in given.items() if value is not None or name in spec.telling}


async def asked(ask: Ask, method: str, route: str, query: Sequence[tuple[str, str]], body: bytes = b"") -> ToolResult:
    """Return what a route answers to a caller, as a tool's outcome; its problem document where it refuses."""
    headers = {"content-type": "application/json", "accept": "application/json"}
    reply = await ask(Request(method, f"/{route}", urlencode(query), headers, body))
    content = json.loads(reply.body)
    if reply.status >= 400:  # noqa: PLR2004  the first status of errors
        return ToolResult(content, is_error=True)
    if isinstance(content, list):
        more = next((value for name, value in reply.headers.items() if name.lower() == "x-provenance-has-more"), "")
        content = {_LISTED: content, "hasMore": more == "true"}
    return ToolResult(content)


def query_text(values: Mapping[str, Any], types: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return arguments as the query string has them.

    Args:
        values: JSON values by name.
        types: the JSON type of each, ``string`` or ``integer``.

    Raises:
        WorkspaceError: INVALID naming each that is not of its type: as text it would ask for something else.
    """
    texts = {name: _text_of(value, types[name]) for name, value in values.items()}
    wrong = [name for name, text in texts.items() if text is None]
    if wrong:
        raise invalid_fields([FieldError(name, _EXPECTED[types[name]]) for name in wrong])
    return [(name, text) for name, text in texts.items() if text is not None]


def _text_of(value: Any, kind: str) -> str | None:
    if kind == "string":
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return str(int(value))
