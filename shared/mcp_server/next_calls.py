"""Errors of tool calls with the call that an assistant should make next.

Separate from ``transport`` because it is pure computation that does not need the SDK.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from shared.mcp_server.capabilities import Schema, Tool, ToolResult

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
    "QUERY_NOT_READ_ONLY": "with a query that only reads",
    "QUERY_TOO_LARGE": "with a shorter timeRange, or aggregate in KQL",
    "TIME_RANGE_NOT_APPLICABLE": "without timeRange, from and to",
    "QUERY_TIMEOUT": "with a shorter timeRange",
    "RESULT_TOO_LARGE": "with a smaller limit or a shorter timeRange",
    "ACCESS_RIGHT_MISSING": "after an administrator has granted the missing right",
}
"""Change to make before the same tool is called again, by error code."""

_LATER: Final = "later; if the error has the member `retryAfter`, after this many seconds"


def add_next_call(result: ToolResult, tool: Tool, tools: Collection[str]) -> ToolResult:
    """Return the result of a failed call with the property `nextCall`, a sentence about the next call.

    Args:
        result: the problem document (error object) of the failed call.
        tool: the tool that failed.
        tools: names of the caller's tools; no other tool is recommended.
    """
    return ToolResult({**result.content, "nextCall": _describe_next_call(result.content, tool, tools)}, is_error=True)


def _describe_next_call(problem: Mapping[str, Any], tool: Tool, tools: Collection[str]) -> str:
    code = problem.get("code", "")
    name, purpose = _LISTS.get(code, ("", ""))
    if name in tools:
        nearest = problem.get("nearest")
        again = f"Call {tool.name} again with {_join_names(nearest)}, or call" if nearest else "Call"
        return f"{again} {name} {purpose}."
    correction = _CORRECTIONS.get(code, "with corrected arguments" if name else _LATER)
    return f"Call {tool.name} again {correction}. {describe_arguments(tool.input_schema)}"


def describe_arguments(schema: Schema) -> str:
    """Write a sentence with the names of a tool's arguments."""
    required = schema.get("required", ())
    names = [f"{name} (required)" if name in required else name for name in schema.get("properties", {})]
    return f"Its arguments: {', '.join(names)}." if names else "It has no arguments."


def _join_names(names: Collection[str]) -> str:
    return " or ".join(f"`{name}`" for name in names)
