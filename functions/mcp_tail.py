"""The newest telemetry as a tool."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr

from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.http.validation import validated
from shared.mcp_server.capabilities import Tool, ToolResult
from shared.openapi.schemas import inline_schema
from shared.warm_queries.ports import EngineQuery
from shared.warm_queries.results import row_objects
from shared.wiring import services

_TIMEOUT_SECONDS: Final = 20
_KQL: Final = """declare query_parameters(connections:dynamic, window:timespan);
Telemetry
| where ConnectionLookup in (connections) and Timestamp between (ago(window) .. now())
| top 1000 by Timestamp desc
| project Timestamp, ConnectionLookup, DeviceId, MessageId, Payload"""


def _whole(value: Any) -> Any:
    """Return a whole number, which JSON may write with a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("a whole number is expected")  # noqa: TRY004  pydantic catches ValueError
    return value


Whole = Annotated[int, BeforeValidator(_whole)]


class TailArguments(BaseModel):
    """Which messages; those that come from the future are left out."""

    model_config = ConfigDict(extra="forbid")

    connection: StrictStr | None = Field(None, description="Lookup of a data connection; all of them when left out.")
    surface: StrictStr | None = Field(None, description="Lookup of a surface whose connections are meant.")
    minutes: Whole = Field(60, ge=1, le=1440, description="How far back to look.")
    limit: Whole = Field(20, ge=1, le=1000, description="Most messages to return.")


class TailMessage(TypedDict):
    """One message."""

    Timestamp: str
    ConnectionLookup: str
    DeviceId: str
    MessageId: str
    Payload: Any


class Tail(TypedDict):
    """The newest messages first."""

    messages: list[TailMessage]


def tail_tools(principal: Principal, catalog: Catalog) -> Sequence[Tool]:
    """Return the tool, nothing without the right to the live stream."""
    if AccessRight.LIVE_STREAM_READ not in principal.rights:
        return ()

    async def tail(arguments: Mapping[str, Any]) -> ToolResult:
        given = {name: value for name, value in arguments.items() if value is not None}
        return ToolResult({"messages": await _messages(validated(TailArguments, given), catalog)})

    return (
        Tool(
            "tail_telemetry",
            "Tail telemetry",
            "Read the newest telemetry messages, of one connection or surface where it is named.",
            inline_schema(TailArguments, "validation"),
            inline_schema(Tail, "serialization"),
            tail,
        ),
    )


async def _messages(wanted: TailArguments, catalog: Catalog) -> list[dict[str, Any]]:
    values = {
        "connections": f"dynamic({json.dumps(sorted(_connections(wanted, catalog)))})",
        "window": f"time({wanted.minutes // 60:02d}:{wanted.minutes % 60:02d}:00)",
    }
    if wanted.minutes == 1440:  # noqa: PLR2004  a day has no 24:00 in Kusto's text
        values["window"] = "time(1.00:00:00)"
    result = await services().engine.execute(EngineQuery(_KQL, values, wanted.limit, _TIMEOUT_SECONDS))
    return row_objects(result.columns, result.rows[: wanted.limit])


def _connections(wanted: TailArguments, catalog: Catalog) -> set[str]:
    chosen = set(catalog.connections)
    if wanted.connection is not None:
        if wanted.connection not in catalog.connections:
            raise WorkspaceError(Kind.NOT_FOUND, "CONNECTION_NOT_FOUND", "There is no connection with this lookup.")
        chosen = {wanted.connection}
    if wanted.surface is not None:
        surface = catalog.surfaces.get(wanted.surface)
        if surface is None:
            raise WorkspaceError(Kind.NOT_FOUND, "SURFACE_NOT_FOUND", "There is no surface with this lookup.")
        chosen &= set(surface.value.connections)
    return chosen
