"""Capabilities of the MCP server that a caller may use: tools, resources and prompts, without the protocol's types."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.errors import WorkspaceError
from shared.http.problems import build_problem_reply
from shared.observability.logs import request_id

type Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Result of an assistant's call of an MCP tool.

    Attributes:
        content: JSON object: the structured content, or the problem document of an error.
        is_error: True if the tool failed; the model sees the error and may retry.
    """

    content: Mapping[str, Any]
    is_error: bool = False


type Run = Callable[[Mapping[str, Any]], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tool:
    """Tool that an AI assistant can call.

    Attributes:
        name: unique among the caller's tools.
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

    def find_unknown_arguments(self, names: Iterable[str]) -> list[str]:
        """Return the given names that are not arguments of this tool, neither listed nor hidden."""
        known = {*self.input_schema.get("properties", {}), *self.hidden_arguments}
        return [name for name in names if name not in known]


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
    """MCP tools, resources and prompts that one caller may use, in a stable order.

    A tool or resource is built when a request reads it, because a workspace can have thousands of queries.

    Attributes:
        caller: the caller's name.
        tools: function that builds the tool, by name.
        resources: function that builds the resource, by address.
        prompts: prompt templates of the caller.
    """

    caller: str
    tools: Mapping[str, Callable[[], Tool]]
    resources: Mapping[str, Callable[[], Resource]]
    prompts: Sequence[Prompt]


def to_error_result(error: WorkspaceError) -> ToolResult:
    """Convert an error of the service to a tool result that the AI model can read."""
    return ToolResult(json.loads(build_problem_reply(error, request_id.get()).body), is_error=True)
