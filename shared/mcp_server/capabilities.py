"""What a caller is offered: tools, resources and prompts, free of the protocol's own types."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.errors import WorkspaceError
from shared.http.problems import problem_reply
from shared.observability.logs import request_id

type Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool came to.

    Attributes:
        content: a JSON object: the structured content, or the problem document of an error.
        is_error: whether the tool failed; the model is told of it and may try again.
    """

    content: Mapping[str, Any]
    is_error: bool = False


type Run = Callable[[Mapping[str, Any]], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that an assistant can have done.

    Attributes:
        name: unique among the caller's tools.
        title: for people.
        description: for the model: what it does and when to use it.
        input_schema: JSON schema of the arguments, an object; others are to_error_result.
        output_schema: JSON schema of the structured content, an object.
        run: does it; arguments are checked there.
        read_only: whether it changes nothing.
        hidden_arguments: names of arguments that are taken, and not shown: earlier names of others.
    """

    name: str
    title: str
    description: str
    input_schema: Schema
    output_schema: Schema
    run: Run = field(repr=False)
    read_only: bool = True
    hidden_arguments: tuple[str, ...] = ()

    def find_unknown(self, names: Iterable[str]) -> list[str]:
        """Return those of some arguments' names that are none of the tool's."""
        known = {*self.input_schema.get("properties", {}), *self.hidden_arguments}
        return [name for name in names if name not in known]


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that an assistant can read.

    Attributes:
        uri: its address.
        name: short, for programs.
        title: for people.
        description: what it is.
        content: JSON.
    """

    uri: str
    name: str
    title: str
    description: str
    content: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """A blank of a prompt."""

    name: str
    description: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Prompt:
    """A job that is described well once, with blanks.

    Attributes:
        text: with ``{name}`` where a blank's value goes.
    """

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Everything that one caller is offered, in a stable order; calls are logged under the caller's name."""

    caller: str
    tools: Sequence[Tool]
    resources: Sequence[Resource]
    prompts: Sequence[Prompt]


def to_error_result(error: WorkspaceError) -> ToolResult:
    """Return an error as a tool's outcome, for the model to read."""
    return ToolResult(json.loads(problem_reply(error, request_id.get()).body), is_error=True)
