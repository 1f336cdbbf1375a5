"""Capabilities of the MCP server that a caller may use: tools, resources and prompts.

This module does not depend on the MCP SDK. JSON schemas in tool lists are compact, because an assistant reads the whole
list before each conversation. The error of a tool call recommends the next call to the assistant.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from shared.errors import Kind, WorkspaceError
from shared.http.problems import build_problem_reply
from shared.observability.logs import request_id

type Schema = Mapping[str, Any]

MAX_RESULT_CHARACTERS: Final = 4 * 1024 * 1024
"""Maximum characters of a tool's result, which is sent twice (as text and as an object); no assistant reads more."""

MAX_RESULT_BYTES: Final = 4 * MAX_RESULT_CHARACTERS
"""Maximum size in bytes of a tool's result, because a character has at most four bytes in UTF-8."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of an MCP tool call.

    Attributes:
        content: JSON object: the structured content, or the problem document of an error. A large property may be an
            ``orjson.Fragment`` with its JSON text.
        is_error: True if the tool failed; the model sees the error and may retry.
        json_text: structured content as JSON text in UTF-8; empty if ``content`` contains it.
    """

    content: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False
    json_text: bytes = b""


type Run = Callable[[Mapping[str, Any]], Awaitable[ToolResult]]
"""Function that runs a tool with the arguments of a call."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Tool that an AI assistant can call.

    Attributes:
        name: name of the tool, unique among the caller's tools.
        title: title for people.
        description: description for the model: effect and purpose.
        input_schema: JSON schema of the arguments, an object; unknown arguments are rejected.
        output_schema: JSON schema of the structured content, an object.
        run: receives the arguments of a call, validates them and executes the tool.
        read_only: True if the tool changes no data.
        hidden_arguments: former names of arguments, accepted but not listed.
    """

    name: str
    title: str
    description: str
    input_schema: Schema
    output_schema: Schema
    run: Run = field(repr=False)
    read_only: bool = True
    hidden_arguments: tuple[str, ...] = ()

    def find_unknown_arguments(self, argument_names: Iterable[str]) -> list[str]:
        """Return the given names that are not arguments of this tool, neither listed nor hidden."""
        known = {*self.input_schema.get("properties", {}), *self.hidden_arguments}
        return [name for name in argument_names if name not in known]


@dataclass(frozen=True, slots=True)
class Resource:
    """Resource that an AI assistant can read.

    Attributes:
        uri: address of the resource.
        name: short name for programs.
        title: title for people.
        description: description of the content.
        content: JSON content.
    """

    uri: str
    name: str
    title: str
    description: str
    content: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """Argument of a prompt template."""

    name: str
    description: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt template for a common task.

    Attributes:
        text: template with ``{name}`` in place of each argument.
    """

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """MCP tools, resources and prompts that one caller may use; the lists that clients get are sorted.

    A tool or resource is built when a request reads it, because a workspace can have thousands of queries.

    Attributes:
        caller: the caller's name.
        tools: functions that build the tools, by name of the tool.
        resources: functions that build the resources, by address of the resource.
        prompts: prompt templates of the caller.
    """

    caller: str
    tools: Mapping[str, Callable[[], Tool]]
    resources: Mapping[str, Callable[[], Resource]]
    prompts: Sequence[Prompt]


def build_result_too_large_error() -> WorkspaceError:
    """Build the error for a tool's result of over ``MAX_RESULT_CHARACTERS``."""
    detail = f"The result exceeds {MAX_RESULT_CHARACTERS} characters; request fewer rows or a shorter time range."
    return WorkspaceError(Kind.TOO_LARGE, "RESULT_TOO_LARGE", detail)


def to_error_result(error: WorkspaceError) -> ToolResult:
    """Convert an error of the service to a tool result that the AI model can read."""
    return ToolResult(json.loads(build_problem_reply(error, request_id.get()).body), is_error=True)


_VALUES: Final = frozenset({"const", "default", "enum", "examples", "required"})
"""Keywords that contain values, not schemas."""

_NAMED: Final = frozenset({"properties", "$defs"})
"""Keywords that contain schemas by name."""

_INPUT_NOISE: Final = frozenset({"examples", "format", "maxLength", "minLength", "pattern", "title"})
"""Keywords of arguments that a description with an example makes unnecessary; the service checks all rules."""

_OUTPUT_KEYWORDS: Final = frozenset({"allOf", "anyOf", "const", "enum", "items", "oneOf", "properties", "type"})
"""Keywords that a result's schema keeps: structure and types."""


def compact_input_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments without titles, formats, patterns, length limits and examples."""
    compacted = _compact_schema(schema, lambda keyword: keyword not in _INPUT_NOISE)
    compacted.pop("description", None)
    return {keyword: value for keyword, value in compacted.items() if value != []}


def compact_output_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's result, reduced to its properties and their types.

    Each reference to a named schema is replaced by the type of this schema, such as object.
    """
    named = schema.get("$defs", {})
    return _compact_schema(_replace_references_by_types(schema, named), _OUTPUT_KEYWORDS.__contains__)


def _replace_references_by_types(value: Any, named_schemas: Mapping[str, Any]) -> Any:
    """Return a copy of a schema; each ``$ref`` is replaced by its target's type, such as ``{"type": "object"}``."""
    if isinstance(value, list):
        return [_replace_references_by_types(each, named_schemas) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "$ref" in value:
        kind = _find_json_type(value, named_schemas)
        return {} if kind is None else {"type": kind}
    return {
        keyword: _replace_references_by_types(each, named_schemas)
        for keyword, each in value.items()
        if keyword != "$defs"
    }


def _find_json_type(schema: Mapping[str, Any], named_schemas: Mapping[str, Any]) -> Any:
    """Return the JSON type of a schema, of the schema that it references, or of all its alternatives.

    Return None if the schema has no type, or if its alternatives have different types.
    """
    if "$ref" in schema:
        return _find_json_type(named_schemas.get(schema["$ref"].rpartition("/")[2], {}), named_schemas)
    if "anyOf" in schema:
        first, *others = (_find_json_type(each, named_schemas) for each in schema["anyOf"])
        return first if all(each == first for each in others) else None
    return schema.get("type")


def _compact_schema(schema: Mapping[str, Any], is_kept_keyword: Callable[[str], bool]) -> dict[str, Any]:
    """Return a copy of a schema and its inner schemas with only the keywords for which ``is_kept_keyword`` is true."""
    kept = {keyword: value for keyword, value in schema.items() if is_kept_keyword(keyword)}
    return _merge_alternative_types(
        {keyword: _compact_keyword_value(keyword, value, is_kept_keyword) for keyword, value in kept.items()}
    )


def _compact_keyword_value(keyword: str, value: Any, is_kept_keyword: Callable[[str], bool]) -> Any:
    if keyword in _VALUES:
        return value
    if keyword in _NAMED:
        return {name: _compact_schema(each, is_kept_keyword) for name, each in value.items()}
    if isinstance(value, Mapping):
        return _compact_schema(value, is_kept_keyword)
    if isinstance(value, list):
        return [_compact_schema(each, is_kept_keyword) if isinstance(each, Mapping) else each for each in value]
    return value


def _merge_alternative_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Merge the alternatives of a schema (``anyOf``), such as text or null, into one schema with a list of types.

    The schema is returned unchanged if it has no ``anyOf``, and in these cases: an alternative has no single type; an
    alternative has ``enum`` or ``const``; several alternatives have keywords other than the type.
    """
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or not all(isinstance(each.get("type"), str) for each in choices):
        return schema
    detailed = [each for each in choices if len(each) > 1]
    if len(detailed) > 1:
        return schema
    others = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    # Keywords of one type do not apply to values of another, except these two.
    rules = detailed[0] if detailed else {}
    if {"enum", "const"} & rules.keys():
        return schema
    kinds = list(dict.fromkeys(each["type"] for each in choices))
    return {**rules, "type": kinds if len(kinds) > 1 else kinds[0], **others}


_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "WARM_QUERY_NOT_FOUND": ("list_warm_queries", "for the lookups of the queries"),
    "QUERY_NOT_APPROVED": ("list_warm_queries", "and select a query that has an approval"),
    "CONNECTION_NOT_FOUND": ("list_data_connections", "for the lookups of the connections"),
    "SURFACE_NOT_FOUND": ("list_surfaces", "for the lookups of the surfaces"),
    "SCOPE_KEY_REQUIRED": ("list_audit_scopes", "for the scopes"),
    "RECORD_NOT_FOUND": ("query_audit_events", "for the records of the chain"),
    "TARGET_SCOPE_MISMATCH": ("list_audit_scopes", "for each scope and its target"),
    "TARGET_UNKNOWN": ("list_audit_scopes", "for each scope and its target"),
    "CHECKPOINT_REFUSED": ("list_audit_scopes", "for the last verification of the chain"),
    "VERIFY_TIMEOUT": ("list_audit_scopes", "for the last verification of the chain"),
}
"""Tool that lists the valid values, and its purpose, by error code."""

_CORRECTIONS: Final[Mapping[str, str]] = {
    "INVALID_REQUEST": "with corrected arguments",
    "QUERY_INVALID": "with corrected KQL",
    "QUERY_NOT_APPROVED": "after another person has approved the query",
    "QUERY_NOT_READ_ONLY": "with a query that only reads",
    "QUERY_TOO_LARGE": "with a shorter timeRange, or aggregate in KQL",
    "TIME_RANGE_NOT_APPLICABLE": "without timeRange, from and to",
    "QUERY_TIMEOUT": "with a shorter timeRange",
    "RESULT_TOO_LARGE": "with a smaller limit or a shorter timeRange",
    "ACCESS_RIGHT_MISSING": "after an administrator has granted the missing right",
    "CHECKPOINT_REFUSED": "after an operator has corrected the cause that `detail` names",
}
"""Change to make before the same tool is called again, by error code."""

_LATER: Final = "later; if the error has the member `retryAfter`, after this many seconds"


def add_next_call_advice(result: ToolResult, failed_tool: Tool, tool_names: Collection[str]) -> ToolResult:
    """Return the result of a failed call with the property `nextCall`, a sentence that recommends the next tool call.

    Args:
        result: the problem document (error object) of the failed call.
        failed_tool: the tool that failed.
        tool_names: names of the caller's tools; no other tool is recommended.
    """
    return ToolResult(
        {**result.content, "nextCall": _describe_next_call(result.content, failed_tool, tool_names)}, is_error=True
    )


def _describe_next_call(problem: Mapping[str, Any], failed_tool: Tool, tool_names: Collection[str]) -> str:
    code = problem.get("code", "")
    name, purpose = _LISTS.get(code, ("", ""))
    if name in tool_names:
        nearest = problem.get("nearest")
        again = f"Call {failed_tool.name} again with {_join_names_with_or(nearest)}, or call" if nearest else "Call"
        return f"{again} {name} {purpose}."
    correction = _CORRECTIONS.get(code, "with corrected arguments" if name else _LATER)
    return f"Call {failed_tool.name} again {correction}. {describe_tool_arguments(failed_tool.input_schema)}"


def describe_tool_arguments(input_schema: Schema) -> str:
    """Write a sentence with the names of a tool's arguments."""
    required = input_schema.get("required", ())
    names = [f"{name} (required)" if name in required else name for name in input_schema.get("properties", {})]
    return f"Its arguments: {', '.join(names)}." if names else "It has no arguments."


def _join_names_with_or(names: Collection[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)
