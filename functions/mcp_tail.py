"""MCP tool that returns the newest telemetry messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr

from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.http.validation import validate_model
from shared.mcp_server.capabilities import Tool, ToolResult
from shared.openapi.schemas import inline_schema
from shared.warm_queries.ports import EngineQuery
from shared.warm_queries.results import to_row_objects
from shared.wiring import services

_TIMEOUT_SECONDS: Final = 20
_KQL: Final = """declare query_parameters(connections:dynamic, window:timespan);
Telemetry
| where ConnectionLookup in (connections) and Timestamp between (ago(window) .. now())
| top 1000 by Timestamp desc
| project Timestamp, ConnectionLookup, DeviceId, MessageId, Payload"""


def _parse_integer(value: Any) -> Any:
    """Return a whole number; ``1.0`` counts as one, because JSON does not distinguish it from ``1``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be a whole number")  # noqa: TRY004  pydantic catches ValueError
    return value


Whole = Annotated[int, BeforeValidator(_parse_integer)]


class TailArguments(BaseModel):
    """Arguments of the tool; messages with a timestamp in the future are excluded."""

    model_config = ConfigDict(extra="forbid")

    connection: StrictStr | None = Field(None, description="Lookup of a data connection. Default: all connections.")
    surface: StrictStr | None = Field(None, description="Lookup of a surface; only messages of its connections.")
    minutes: Whole = Field(60, ge=1, le=1440, description="Only messages of this many minutes before now.")
    limit: Whole = Field(20, ge=1, le=1000, description="Maximum number of messages.")


class TailMessage(TypedDict):
    """A telemetry message."""

    Timestamp: str
    ConnectionLookup: str
    DeviceId: str
    MessageId: str
    Payload: Any


class Tail(TypedDict):
    """Messages, newest first."""

    messages: list[TailMessage]


def build_tail_tools(principal: Principal, catalog: Catalog) -> Sequence[Tool]:
    """Return the tool, or none if the principal has no right to read the live stream."""
    if AccessRight.LIVE_STREAM_READ not in principal.rights:
        return ()

    async def tail(arguments: Mapping[str, Any]) -> ToolResult:
        present = {name: value for name, value in arguments.items() if value is not None}
        return ToolResult({"messages": await _read_messages(validate_model(TailArguments, present), catalog)})

    return (
        Tool(
            "tail_telemetry",
            "Tail telemetry",
            "Read the newest telemetry messages, optionally of one connection or surface.",
            inline_schema(TailArguments, "validation"),
            inline_schema(Tail, "serialization"),
            tail,
        ),
    )


async def _read_messages(arguments: TailArguments, catalog: Catalog) -> list[dict[str, Any]]:
    values = {
        "connections": f"dynamic({json.dumps(sorted(_select_connections(arguments, catalog)))})",
        "window": f"time({arguments.minutes // 60:02d}:{arguments.minutes % 60:02d}:00)",
    }
    if arguments.minutes == 1440:  # noqa: PLR2004  Kusto does not accept 24:00
        values["window"] = "time(1.00:00:00)"
    result = await services().engine.execute(EngineQuery(_KQL, values, arguments.limit, _TIMEOUT_SECONDS))
    return to_row_objects(result.columns, result.rows[: arguments.limit])


def _select_connections(arguments: TailArguments, catalog: Catalog) -> set[str]:
    selected = set(catalog.connections)
    if arguments.connection is not None:
        if arguments.connection not in catalog.connections:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", "No data connection has this lookup.")
        selected = {arguments.connection}
    if arguments.surface is not None:
        surface = catalog.surfaces.get(arguments.surface)
        if surface is None:
            raise WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", "No surface has this lookup.")
        selected &= set(surface.value.connections)
    return selected
