"""MCP tools that call an operation of the HTTP API, through the same request pipeline as an HTTP request."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from functions.mcp_arguments import ROWS, add_argument_descriptions
from shared.errors import FieldError, build_invalid_field_error, build_invalid_fields_error
from shared.http.messages import Reply, Request
from shared.http.operations import NoBody, NoQuery, Operation
from shared.http.unknown_names import IGNORED
from shared.mcp_server.capabilities import (
    MAX_RESULT_BYTES,
    Run,
    Schema,
    Tool,
    ToolResult,
    build_result_too_large_error,
)
from shared.openapi.schemas import build_schema_with_definitions, list_query_parameters
from shared.text_formats.serialisation import serialise_json
from shared.wiring import services

type SendRequest = Callable[[Request], Awaitable[Reply]]
"""Function that sends a request through the request pipeline as the caller."""

_RECORDS: Final = "records"
_EXPECTED: Final = {"string": "must be a string", "integer": "must be a whole number"}


@dataclass(frozen=True, slots=True)
class RouteTool:
    """Declaration of an MCP tool that calls an operation of the HTTP API.

    Attributes:
        name: name of the tool.
        operation: name of the operation.
        title: title that MCP clients show to users.
        description: description of the tool for the language model.
        renamed: names of body properties by name of the argument, if the two differ; callers may use either name.
        nullable: names of body properties that are sent even if they are null, because null has a meaning.
        omitted: query parameters of the operation that the tool does not have.
        descriptions: descriptions of arguments that replace the general ones.
    """

    name: str
    operation: str
    title: str
    description: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    nullable: frozenset[str] = frozenset()
    omitted: frozenset[str] = frozenset()
    descriptions: Mapping[str, str] = field(default_factory=dict)


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
        "Prefer an approved warm query if one fits.",
        omitted=frozenset({"format"}),
        descriptions={"limit": ROWS},
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
        "Recompute every digest and link of a chain and report whether it is unbroken. Reads the whole chain. "
        "Without scopeKey: the workspace's configuration changes.",
        renamed={"scopeKey": "ScopeKey", "recordId": "RecordID"},
        nullable=frozenset({"RecordID"}),
    ),
    RouteTool(
        "list_audit_scopes",
        "list_scopes",
        "List audit scopes",
        "List all chains of the audit log with their records, pending amendments and last verification. Pass `cursor` "
        "of a result to read the next page.",
    ),
    RouteTool(
        "list_alerts",
        "list_alerts",
        "List alerts",
        "List pending, firing and resolved alerts, newest first, with value, labels and acknowledgement. Pass `cursor` "
        "of a result to read the next page.",
        descriptions={"surface": "Only alerts of rules of this surface, for example cooling."},
    ),
    RouteTool(
        "list_alert_rules",
        "list_alert_rules",
        "List alert rules",
        "List the alert rules with their condition, query, state and the error of their newest evaluation.",
    ),
    RouteTool(
        "list_amendments",
        "query_scope_amendments",
        "List amendments",
        "Read the amendments (documented corrections) of a scope and their approvals, newest first.",
        descriptions={"scopeKey": "Scope of the records, for example line-1."},
    ),
)


def build_route_tools(operations: Mapping[str, Operation], send_request: SendRequest) -> Iterable[Tool]:
    """Build the MCP tools that call operations of the HTTP API.

    Args:
        operations: operations that the caller may use, by name; tools that call other operations are omitted.
        send_request: sends a request through the request pipeline as the caller.
    """
    return [
        _build_route_tool(spec, operations[spec.operation], send_request)
        for spec in ROUTE_TOOLS
        if spec.operation in operations
    ]


def _build_route_tool(spec: RouteTool, operation: Operation, send_request: SendRequest) -> Tool:
    return Tool(
        spec.name,
        spec.title,
        spec.description,
        _build_input_schema(spec, operation),
        build_output_schema(operation),
        _build_operation_runner(spec, operation, send_request),
        hidden_arguments=tuple(spec.renamed.values()),
    )


def _build_input_schema(spec: RouteTool, operation: Operation) -> Schema:
    """Build the JSON schema of a tool's arguments: all query parameters and body properties at one level.

    A query parameter has priority over a body property with the same name.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    if operation.body is not NoBody:
        body = build_schema_with_definitions(operation.body, "validation")
        definitions = dict(body.get("$defs", {}))
        arguments = {member: argument for argument, member in spec.renamed.items()}
        properties |= {
            arguments.get(name, name): one
            for name, one in body.get("properties", {}).items()
            if not one.get("deprecated")
        }
        required += [arguments.get(name, name) for name in body.get("required", [])]
    for parameter in _list_query_parameters(spec, operation):
        properties[parameter["name"]] = parameter["schema"]
        required += [parameter["name"]] if parameter["required"] else []
    schema = {"type": "object", "properties": properties, "required": required}
    built = add_argument_descriptions(schema, **spec.descriptions)
    return {**built, "$defs": definitions} if definitions else built


def _list_query_parameters(spec: RouteTool, operation: Operation) -> list[Schema]:
    parameters = [] if operation.query is NoQuery else list_query_parameters(operation.query)
    return [parameter for parameter in parameters if parameter["name"] not in spec.omitted]


def build_output_schema(operation: Operation) -> Schema:
    """Return the JSON schema of an operation's JSON reply, for the output of a tool.

    The output of a tool must be an object, so a reply that is an array becomes the property ``records``. The other
    properties are the reply's headers: whether there are more records, and the names of ignored arguments.
    """
    answer = next(one for one in operation.docs.replies if one.shape is not None)
    schema = build_schema_with_definitions(answer.shape, "serialization")
    if schema.get("type") == "object":
        return schema
    definitions = schema.pop("$defs", None)
    built = {
        "type": "object",
        "properties": {
            _RECORDS: schema,
            "hasMore": {"type": "boolean"},
            "ignored": {"type": "array", "items": {"type": "string"}},
        },
        "required": [_RECORDS],
    }
    return {**built, "$defs": definitions} if definitions else built


def _build_operation_runner(spec: RouteTool, operation: Operation, send_request: SendRequest) -> Run:
    parameters = _list_query_parameters(spec, operation)
    types = {one["name"]: one["schema"].get("type", "string") for one in parameters}

    async def call_operation(arguments: Mapping[str, Any]) -> ToolResult:
        members = _rename_arguments_for_operation(spec, arguments)
        query = _to_query_pairs({name: members.pop(name) for name in sorted(types.keys() & members.keys())}, types)
        body = b"" if operation.body is NoBody else serialise_json(members)
        result = await _call_route(send_request, operation, query, body)
        argument_names = {member: argument for argument, member in spec.renamed.items() if member not in arguments}
        return _rename_error_fields(result, argument_names) if result.is_error else result

    return call_operation


def _rename_arguments_for_operation(spec: RouteTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by the operation's own names; omit a null unless null has a meaning for the argument.

    Raises:
        WorkspaceError: INVALID if the request contains an argument under both of its names.
    """
    for argument, member in spec.renamed.items():
        if argument in arguments and member in arguments:
            raise build_invalid_field_error(member, f"must not be sent together with {argument}")
    members = {spec.renamed.get(name, name): value for name, value in arguments.items()}
    return {name: value for name, value in members.items() if value is not None or name in spec.nullable}


def _rename_error_fields(result: ToolResult, argument_names: Mapping[str, str]) -> ToolResult:
    """Return an error result that names the fields by the tool's arguments instead of the operation's properties.

    Args:
        result: error result of the operation.
        argument_names: argument names of the tool by property name of the operation, where the two differ.
    """
    detail, errors = str(result.content.get("detail", "")), []
    for error in result.content.get("errors", ()):
        field_name, message = argument_names.get(error["field"], error["field"]), error["message"]
        detail = detail.replace(f"{error['field']}: {message}", f"{field_name}: {message}")
        errors.append({**error, "field": field_name})
    return ToolResult({**result.content, "errors": errors, "detail": detail}, is_error=True) if errors else result


async def _call_route(
    send_request: SendRequest, operation: Operation, query_pairs: Sequence[tuple[str, str]], json_body: bytes
) -> ToolResult:
    """Send a request to an operation and return its reply as the result of a tool.

    If the request is rejected, the result is the problem document.

    Raises:
        WorkspaceError: TOO_LARGE ``RESULT_TOO_LARGE`` if the reply is an array that exceeds the maximum size of a
            result.
    """
    headers = {"content-type": "application/json", "accept": "application/json"}
    reply = await send_request(
        Request(operation.method, f"/{operation.route}", urlencode(query_pairs), headers, json_body)
    )
    if reply.status >= 400:  # noqa: PLR2004  the first status of errors
        problem = await services().runtime.run_in_thread_if_large(len(reply.body), json.loads, reply.body)
        return ToolResult(problem, is_error=True)
    if not reply.body.startswith(b"["):
        return ToolResult(json_text=reply.body)
    if len(reply.body) > MAX_RESULT_BYTES:
        raise build_result_too_large_error()
    headers = {name.lower(): value for name, value in reply.headers.items()}
    content = {
        _RECORDS: orjson.Fragment(reply.body),
        "hasMore": headers.get("x-provenance-has-more") == "true",
        "ignored": headers[IGNORED].split(", ") if IGNORED in headers else [],
    }
    return ToolResult(content)


def _to_query_pairs(arguments: Mapping[str, Any], json_types: Mapping[str, str]) -> list[tuple[str, str]]:
    """Convert the arguments of an MCP tool to the name-value pairs of a query string.

    Args:
        arguments: JSON values by the name of the argument.
        json_types: JSON type by the name of the argument, ``string`` or ``integer``.

    Raises:
        WorkspaceError: INVALID with the name of each argument that does not have its type in ``json_types``. Such a
            value is not converted to text, because the operation would accept the text as another value: the boolean
            ``true`` would become the string ``"true"``.
    """
    texts = {name: _to_query_text_if_type_matches(value, json_types[name]) for name, value in arguments.items()}
    wrong = [name for name, text in texts.items() if text is None]
    if wrong:
        raise build_invalid_fields_error([FieldError(name, _EXPECTED[json_types[name]]) for name in wrong])
    return [(name, text) for name, text in texts.items() if text is not None]


def _to_query_text_if_type_matches(value: Any, json_type: str) -> str | None:
    """Convert a JSON value to the text of a query parameter; None if it does not have the JSON type ``json_type``."""
    if json_type == "string":
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return str(int(value))
