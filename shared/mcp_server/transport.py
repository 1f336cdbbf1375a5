"""Bridge that passes an HTTP request to the Streamable HTTP transport of the official MCP SDK.

The transport stores no state between requests, and replies in JSON.

Each request has its own ``ProtocolSession``: the SDK's server with the capabilities of one caller.

This module is separate from ``functions.mcp``, because the SDK loads slowly: only the first MCP request imports it.
"""

import asyncio
import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import ValidationError

from shared.errors import Kind, WorkspaceError
from shared.http.messages import JSON, Reply, Request
from shared.http.problems import build_problem_reply
from shared.http.unknown_names import build_unknown_arguments_error
from shared.mcp_server.capabilities import (
    MAX_RESULT_BYTES,
    MAX_RESULT_CHARACTERS,
    Capabilities,
    Prompt,
    Resource,
    Tool,
    ToolResult,
    add_next_call_advice,
    build_result_too_large_error,
    compact_input_schema,
    compact_output_schema,
    to_error_result,
)
from shared.mcp_server.prompts import DEFAULTS
from shared.mcp_server.reply_contents import ReplyContents, build_object_placeholder
from shared.observability import logs
from shared.observability.logs import request_id
from shared.provenance.cursors import decode_cursor, encode_cursor
from shared.runtime import Runtime
from shared.text_formats.serialisation import serialise_json, serialise_json_in_parts
from shared.text_formats.strict_json import parse_json_body
from shared.validation.names import find_nearest_names, format_nearest_names_suggestion

_FIRST_ERROR: Final = 400
NAME: Final = "industrial-data-workspace"
VERSION: Final = "1.0.0"
_REVISIONS: Final = (LATEST_MODERN_VERSION, LATEST_HANDSHAKE_VERSION)
"""Supported revisions of the protocol. The SDK also knows older ones."""
PAGE_SIZE: Final = 200
"""Maximum number of list items in one reply."""
_ITEM_CHARACTERS: Final = 1_000
"""Assumed size of a list item; decides whether the tools or resources of a page are built in a worker thread."""

_DETAILS_OF_EMPTY_REPLIES: Final = {406: "The header Accept must list `application/json` and `text/event-stream`."}
"""Property ``detail`` of the problem document for an error reply of the transport without a body, by HTTP status."""

_INVALID_REQUEST: Final = (
    'The body must be one JSON-RPC 2.0 message: an object with `"jsonrpc": "2.0"`, a string `method`, an optional `id` '
    "(a string or a whole number) and an optional object `params`."
)
_LOG = logs.get_logger("mcp")
_INTERNAL_ERROR: Final = WorkspaceError(
    Kind.INTERNAL, "INTERNAL_ERROR", "Internal error; the service log contains the reason."
)
_INSTRUCTIONS: Final = (
    "Telemetry, approved queries and the audit log of an industrial workspace. Each approved warm query is a "
    "separate tool. No tool can approve or change a record."
)


async def handle_mcp_request(
    request: Request,
    capabilities: Capabilities,
    accepted_hosts: Sequence[str],
    accepted_origins: Sequence[str] = (),
    *,
    runtime: Runtime,
) -> Reply:
    """Process one request of the Model Context Protocol and return the reply.

    Args:
        request: the POST request.
        capabilities: capabilities of the caller.
        accepted_hosts: accepted values of the Host header, ``name:*`` for any port; prevents DNS rebinding.
        accepted_origins: accepted origins of scripts, in addition to the origins of ``accepted_hosts``.
        runtime: clock, randomness and threads.
    """
    host_origins = [f"{scheme}://{host}" for host in accepted_hosts for scheme in ("http", "https")]
    contents = ReplyContents(runtime=runtime)
    manager = StreamableHTTPSessionManager(
        ProtocolSession(capabilities, contents, runtime=runtime).build_server(),
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(
            allowed_hosts=list(accepted_hosts), allowed_origins=[*host_origins, *accepted_origins]
        ),
    )
    collector, body_error = _ReplyCollector(), await _find_body_error(request.body, runtime)
    # The transport parses JSON leniently. An empty body makes it check the headers and reply with its own parse error.
    body = request.body if body_error is None else b""
    async with manager.run():
        await manager.handle_request(_build_asgi_scope(request), _build_asgi_receive_function(body), collector.send)
    reply = _to_problem_reply(collector.build_reply())
    reply.body = await contents.insert_into_reply_body(reply.body)
    if body_error is not None:
        return _replace_error(reply, types.PARSE_ERROR, body_error)
    version_error = _find_version_error(request)
    # The SDK expects the properties of its newest revision in a request of an unknown one, and names only these.
    return reply if version_error is None else _replace_error(reply, types.INVALID_PARAMS, version_error)


async def _find_body_error(body: bytes, runtime: Runtime) -> types.ErrorData | None:
    """Return the error of a body that is not strict JSON, or is no message of JSON-RPC 2.0 (section 5.1).

    Return None if the body is valid.
    """
    try:
        _validate_json_rpc_message(await parse_json_body(body, runtime))
    except ValidationError:
        return types.ErrorData(code=types.INVALID_REQUEST, message=_INVALID_REQUEST)
    except ValueError as error:
        return types.ErrorData(code=types.PARSE_ERROR, message=f"Parse error: {error}")
    return None


def _validate_json_rpc_message(message: Any) -> None:
    """Raise a ValidationError if a JSON value is not a message of JSON-RPC 2.0."""
    if isinstance(message, dict) and {"id", "method"} <= message.keys():
        # The SDK's union of all messages accepts a request with an invalid id, such as null, as a notification.
        types.JSONRPCRequest.model_validate(message)
    else:
        types.jsonrpc_message_adapter.validate_python(message)


def _find_version_error(request: Request) -> types.ErrorData | None:
    """Return the error of a request whose header names an unknown revision of the protocol.

    Return None if the revision is known or missing.
    """
    requested = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if requested is None or requested in KNOWN_PROTOCOL_VERSIONS:
        return None
    return types.ErrorData(
        code=types.UNSUPPORTED_PROTOCOL_VERSION,
        message=f"The header MCP-Protocol-Version names an unsupported revision; use {' or '.join(_REVISIONS)}.",
        data={"supported": _REVISIONS, "requested": requested},
    )


def _replace_error(reply: Reply, code: int, error: types.ErrorData) -> Reply:
    """Replace the error of a reply if it is a JSON-RPC error with this code; return the reply."""
    if reply.status < _FIRST_ERROR:
        return reply
    document = json.loads(reply.body)
    if document.get("error", {}).get("code") == code:
        reply.body = serialise_json({**document, "error": error.model_dump(exclude_none=True)})
    return reply


def _to_problem_reply(reply: Reply) -> Reply:
    """Convert a plain-text error of the transport to a problem document; return other replies unchanged."""
    if reply.status < _FIRST_ERROR or reply.headers.get("Content-Type", "").startswith(JSON):
        return reply
    detail = reply.body.decode() or _DETAILS_OF_EMPTY_REPLIES.get(reply.status, HTTPStatus(reply.status).phrase)
    error = WorkspaceError(Kind.INVALID, "PROTOCOL_REFUSED", detail)
    return build_problem_reply(error, request_id.get(), HTTPStatus(reply.status))


class _ReplyCollector:
    """Collector of the reply that the transport sends as ASGI messages."""

    def __init__(self) -> None:
        self._status = 500
        self._headers: dict[str, str] = {}
        self._body = bytearray()

    async def send(self, message: Any) -> None:
        """Collect one message of the reply; the transport calls this method as the ASGI function ``send``."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
        else:
            self._body += message.get("body", b"")

    def build_reply(self) -> Reply:
        headers = {name.title(): value for name, value in self._headers.items() if name.lower() != "content-length"}
        return Reply(self._status, bytes(self._body), headers)


def _build_asgi_scope(request: Request) -> dict[str, Any]:
    # The host on Azure decodes headers as UTF-8. The transport only compares header values with ASCII texts.
    headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in request.headers.items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": request.path.encode("latin-1"),
        "query_string": request.query.encode("latin-1"),
        "headers": headers,
        "client": None,
        "server": None,
    }


def _build_asgi_receive_function(body: bytes) -> Any:
    """Build the ASGI function ``receive`` of a request with this body."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        # The client stays connected until the reply is complete; the transport then cancels this wait.
        await asyncio.Event().wait()
        raise AssertionError("unreachable: the event is never set")

    return receive


def _return_no_input_schema(_: str) -> None:
    """Tell the SDK that no argument of a tool has a header ``Mcp-Param-*`` that the SDK must validate.

    Without this function, the SDK builds the tools up to the called one before each call, to look for such arguments.
    """


class ProtocolSession:
    """Handler of the MCP requests of one caller.

    Args:
        capabilities: tools, resources and prompts that the caller may use.
        contents: collects the large texts of the reply. The SDK gets a short placeholder instead of each text.
        runtime: clock, randomness and threads.
    """

    def __init__(self, capabilities: Capabilities, contents: ReplyContents, *, runtime: Runtime) -> None:
        self._capabilities = capabilities
        self._contents = contents
        self._runtime = runtime

    def build_server(self) -> Server[Any]:
        """Build the MCP SDK's server with the handlers of this session."""
        return Server(
            NAME,
            version=VERSION,
            title="Industrial Data Workspace",
            instructions=_INSTRUCTIONS,
            get_tool_input_schema=_return_no_input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_resource_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def _list_tools(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        page, cursor = _select_page("tools", self._capabilities.tools, params)
        tools = await self._runtime.run_in_thread_if_large(len(page) * _ITEM_CHARACTERS, _build_sdk_tools, page)
        return types.ListToolsResult(tools=tools, next_cursor=cursor)

    async def _call_tool(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        build = self._capabilities.tools.get(params.name)
        if build is None:
            rule = f"The tool {params.name!r} does not exist, or this token has no right to use it."
            nearest = await self._suggest_nearest_names(params.name, self._capabilities.tools)
            raise _build_invalid_params_error(f"{rule}{nearest} Call tools/list for all tools.")
        found = build()
        started = self._runtime.monotonic()
        result = await _run_tool(found, params.arguments or {})
        serialise = partial(_serialise_result, tool=found, tool_names=self._capabilities.tools.keys())
        # The size of a result is only known after its serialisation.
        text, is_error = await self._runtime.run_in_thread_if_large(MAX_RESULT_CHARACTERS, serialise, result)
        self._log_call(found.name, started, failed=is_error)
        placeholder = self._contents.add_and_get_placeholder(text)
        content = types.TextContent(type="text", text=placeholder)
        if is_error:
            return types.CallToolResult(content=[content], is_error=True)
        return types.CallToolResult(content=[content], structured_content=build_object_placeholder(placeholder))

    def _log_call(self, tool_name: str, started_at: float, *, failed: bool) -> None:
        took = round((self._runtime.monotonic() - started_at) * 1000, 2)
        _LOG.info(
            "tool", extra=logs.fields(tool=tool_name, principal=self._capabilities.caller, failed=failed, ms=took)
        )

    async def _list_resources(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        page, cursor = _select_page("resources", self._capabilities.resources, params)
        size = len(page) * _ITEM_CHARACTERS
        resources = await self._runtime.run_in_thread_if_large(size, _build_sdk_resources, page)
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def _list_resource_templates(
        self, _: Any, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(
                uri_template=f"workspace://{kind}/{{lookup}}", name=name, title=title, mime_type="application/json"
            )
            for kind, name, title in (
                ("warm-queries", "warm-query", "Definition of a warm query"),
                ("surfaces", "surface", "Definition of a surface"),
            )
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def _read_resource(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        build = self._capabilities.resources.get(uri)
        if build is None:
            nearest = await self._suggest_nearest_names(uri, self._capabilities.resources)
            message = f"The resource {uri!r} does not exist.{nearest} Call resources/list for all resources."
            raise MCPError(types.INVALID_PARAMS, message, {"uri": uri})
        text = await self._runtime.run_in_thread_if_large(MAX_RESULT_CHARACTERS, _build_resource_json, build)
        content = types.TextResourceContents(
            uri=uri, mime_type="application/json", text=self._contents.add_and_get_placeholder(text)
        )
        return types.ReadResourceResult(contents=[content])

    async def _list_prompts(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        prompts = {prompt.name: prompt for prompt in self._capabilities.prompts}
        page, cursor = _select_page("prompts", prompts, params)
        return types.ListPromptsResult(prompts=[_to_sdk_prompt(item) for item in page], next_cursor=cursor)

    async def _get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        found = next((item for item in self._capabilities.prompts if item.name == params.name), None)
        if found is None:
            raise _build_invalid_params_error(
                f"The prompt {params.name!r} does not exist. Call prompts/list for all prompts."
            )
        message = types.TextContent(type="text", text=_fill_prompt_template(found, params.arguments or {}))
        return types.GetPromptResult(
            description=found.description, messages=[types.PromptMessage(role="user", content=message)]
        )

    async def _suggest_nearest_names(self, unknown_name: str, known_names: Collection[str]) -> str:
        """Write a sentence that suggests the known names most similar to an unknown name; empty if none is similar."""
        nearest = await self._runtime.run_in_thread(find_nearest_names, unknown_name, list(known_names))
        return format_nearest_names_suggestion(nearest)


async def _run_tool(tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
    """Run an MCP tool and return its result; reject unknown arguments.

    Unexpected errors are logged, and the reply hides their messages.
    """
    unknown = tool.find_unknown_arguments(arguments)
    if unknown:
        return to_error_result(build_unknown_arguments_error(unknown, tool.input_schema.get("properties", {})))
    try:
        return await tool.run(arguments)
    except WorkspaceError as error:
        return to_error_result(error)
    except Exception:  # noqa: BLE001  the SDK would reply with the error's message
        _LOG.exception("unexpected error in a tool", extra=logs.fields(tool=tool.name))
        return to_error_result(_INTERNAL_ERROR)


class _SerialisedResult(NamedTuple):
    """JSON text of a tool's result, and whether the result is an error."""

    json_text: str
    is_error: bool


def _serialise_result(result: ToolResult, tool: Tool, tool_names: Collection[str]) -> _SerialisedResult:
    """Serialise a tool's result.

    An error gets advice for the next call. A result of over ``MAX_RESULT_CHARACTERS`` is replaced by an error.
    """
    if result.is_error:
        result = add_next_call_advice(result, tool, tool_names)
    text = _to_json_text_if_not_too_large(result)
    if text is None:
        return _serialise_result(to_error_result(build_result_too_large_error()), tool, tool_names)
    return _SerialisedResult(text, result.is_error)


def _to_json_text_if_not_too_large(result: ToolResult) -> str | None:
    """Return the JSON text of a tool's result; None if it has more than ``MAX_RESULT_CHARACTERS``."""
    parts, size = [], 0
    for part in (result.json_text,) if result.json_text else serialise_json_in_parts(dict(result.content)):
        if len(part) > MAX_RESULT_BYTES:
            return None
        parts.append(part.decode())
        size += len(parts[-1])
        if size > MAX_RESULT_CHARACTERS:
            return None
    return "".join(parts)


def _build_resource_json(build_resource: Callable[[], Resource]) -> str:
    return b"".join(serialise_json_in_parts(dict(build_resource().content))).decode()


def _build_sdk_tools(tool_builders: Iterable[Callable[[], Tool]]) -> list[types.Tool]:
    return [_to_sdk_tool(build()) for build in tool_builders]


def _build_sdk_resources(resource_builders: Iterable[Callable[[], Resource]]) -> list[types.Resource]:
    return [_to_sdk_resource(build()) for build in resource_builders]


def _to_sdk_resource(item: Resource) -> types.Resource:
    return types.Resource(
        uri=item.uri, name=item.name, title=item.title, description=item.description, mime_type="application/json"
    )


def _to_sdk_tool(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=tool.read_only, open_world_hint=False)
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={**compact_input_schema(tool.input_schema), "additionalProperties": False},
        output_schema=compact_output_schema(tool.output_schema),
        annotations=hints,
    )


def _to_sdk_prompt(prompt: Prompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=item.name, description=item.description, required=item.required)
        for item in prompt.arguments
    ]
    return types.Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=arguments)


def _fill_prompt_template(prompt: Prompt, arguments: Mapping[str, str]) -> str:
    """Return a prompt's text with the values of its arguments; a missing optional argument has its default."""
    values: dict[str, str] = {}
    for argument in prompt.arguments:
        value = arguments.get(argument.name) or DEFAULTS.get(argument.name)
        if value is None:
            names = ", ".join(item.name for item in prompt.arguments if item.required)
            raise _build_invalid_params_error(
                f"The argument {argument.name!r} is required. Call prompts/get again with the arguments {names}."
            )
        values[argument.name] = value
    # All arguments are inserted at once, because a value can contain the name of another argument in braces.
    return prompt.text.format_map(values)


class _ItemPage[T](NamedTuple):
    """Page of a list, and the cursor of the next page; None on the last page."""

    items: Sequence[T]
    next_cursor: str | None


def _select_page[T](
    list_name: str, items: Mapping[str, T], params: types.PaginatedRequestParams | None
) -> _ItemPage[T]:
    """Return the page of a list, sorted by key, that a request's cursor selects.

    A cursor contains a key and not a position, so that no item is missed or repeated after additions and removals.
    """
    keys = sorted(items)
    start = 0
    if params is not None and params.cursor is not None:
        try:
            [last_key] = decode_cursor(list_name, params.cursor, (str,))
        except ValueError:
            message = "The cursor does not belong to this list; send the request without a cursor."
            raise _build_invalid_params_error(message) from None
        start = bisect_right(keys, str(last_key))
    page = keys[start : start + PAGE_SIZE]
    has_next = start + PAGE_SIZE < len(keys)
    return _ItemPage([items[key] for key in page], encode_cursor(list_name, page[-1:]) if has_next else None)


def _build_invalid_params_error(message: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, message)
