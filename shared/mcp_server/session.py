"""One exchange of the protocol: the official SDK's server over what one caller is offered."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from shared.errors import Kind, WorkspaceError
from shared.http.unknown_names import unknown_arguments
from shared.mcp_server.capabilities import Capabilities, Prompt, Tool, ToolResult, to_error_result
from shared.mcp_server.prompts import DEFAULTS
from shared.observability import logs

NAME: Final = "industrial-data-workspace"
VERSION: Final = "1.0.0"
PAGE: Final = 200
"""Most items of a list in one reply."""
MAX_RESULT: Final = 4 * 1024 * 1024
"""Most characters of a tool's answer; no assistant reads more, and it is sent twice."""

_LOG = logs.get_logger("mcp")
_UNEXPECTED: Final = WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", "The service failed; its log has the reason.")
_INSTRUCTIONS: Final = (
    "Telemetry, approved queries and the audit log of an industrial workspace. Approved warm queries are tools of "
    "their own. Nothing here can approve or change a record."
)


class ProtocolSession:
    """Answers the protocol's requests for one caller.

    Args:
        offers: what the caller may have.
    """

    def __init__(self, offers: Capabilities) -> None:
        self._offers = offers

    def server(self) -> Server[Any]:
        """Return the SDK's server for this exchange."""
        return Server(
            NAME,
            version=VERSION,
            title="Industrial Data Workspace",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def _list_tools(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        page, cursor = _page(self._offers.tools, params)
        return types.ListToolsResult(tools=[_tool(tool) for tool in page], next_cursor=cursor)

    async def _call_tool(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        found = next((tool for tool in self._offers.tools if tool.name == params.name), None)
        if found is None:
            raise _invalid(f"There is no tool {params.name!r}, or this token may not use it.")
        started = time.perf_counter()
        outcome = await _outcome(found, params.arguments or {})
        written = json.dumps(outcome.content, ensure_ascii=False)
        if len(written) > MAX_RESULT:
            detail = f"The answer is longer than {MAX_RESULT} characters; ask for fewer rows or a shorter time."
            outcome = to_error_result(WorkspaceError(Kind.TOO_LARGE, "RESULT_TOO_LARGE", detail))
            written = json.dumps(outcome.content, ensure_ascii=False)
        self._log(found.name, started, failed=outcome.is_error)
        text = types.TextContent(type="text", text=written)
        if outcome.is_error:
            return types.CallToolResult(content=[text], is_error=True)
        return types.CallToolResult(content=[text], structured_content=dict(outcome.content))

    def _log(self, tool: str, started: float, *, failed: bool) -> None:
        took = round((time.perf_counter() - started) * 1000, 2)
        _LOG.info("tool", extra=logs.fields(tool=tool, principal=self._offers.caller, failed=failed, ms=took))

    async def _list_resources(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        page, cursor = _page(self._offers.resources, params)
        resources = [
            types.Resource(
                uri=one.uri, name=one.name, title=one.title, description=one.description, mime_type="application/json"
            )
            for one in page
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=cursor)

    async def _list_templates(
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
        found = next((one for one in self._offers.resources if one.uri == uri), None)
        if found is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no resource {uri!r}.", {"uri": uri})
        text = json.dumps(found.content, ensure_ascii=False)
        content = types.TextResourceContents(uri=found.uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])

    async def _list_prompts(self, _: Any, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        page, cursor = _page(self._offers.prompts, params)
        return types.ListPromptsResult(prompts=[_prompt(one) for one in page], next_cursor=cursor)

    async def _get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        found = next((one for one in self._offers.prompts if one.name == params.name), None)
        if found is None:
            raise _invalid(f"There is no prompt {params.name!r}.")
        message = types.TextContent(type="text", text=_filled(found, params.arguments or {}))
        return types.GetPromptResult(
            description=found.description, messages=[types.PromptMessage(role="user", content=message)]
        )


async def _outcome(tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
    """Run a tool; an argument that it does not have is to_error_result, since what is meant by it would not be done.

    What was not foreseen is logged, and its message shown to nobody.
    """
    unknown = tool.find_unknown(arguments)
    if unknown:
        return to_error_result(unknown_arguments(unknown, tool.input_schema.get("properties", {})))
    try:
        return await tool.run(arguments)
    except WorkspaceError as error:
        return to_error_result(error)
    except Exception:  # noqa: BLE001  the protocol's own error would show its message
        _LOG.exception("a tool failed", extra=logs.fields(tool=tool.name))
        return to_error_result(_UNEXPECTED)


def _tool(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title, read_only_hint=tool.read_only, destructive_hint=False, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={**tool.input_schema, "additionalProperties": False},
        output_schema=dict(tool.output_schema),
        annotations=hints,
    )


def _prompt(prompt: Prompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=one.name, description=one.description, required=one.required)
        for one in prompt.arguments
    ]
    return types.Prompt(name=prompt.name, title=prompt.title, description=prompt.description, arguments=arguments)


def _filled(prompt: Prompt, given: Mapping[str, str]) -> str:
    text = prompt.text
    for blank in prompt.arguments:
        value = given.get(blank.name) or DEFAULTS.get(blank.name)
        if value is None:
            raise _invalid(f"The argument {blank.name!r} is required.")
        text = text.replace(f"{{{blank.name}}}", value)
    return text


def _page[T](items: Sequence[T], params: types.PaginatedRequestParams | None) -> tuple[Sequence[T], str | None]:
    cursor = params.cursor if params else None
    if cursor is not None and cursor not in {str(start) for start in range(PAGE, len(items), PAGE)}:
        raise _invalid("The cursor is none of this list.")
    start = int(cursor or 0)
    end = start + PAGE
    return items[start:end], str(end) if end < len(items) else None


def _invalid(message: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, message)
