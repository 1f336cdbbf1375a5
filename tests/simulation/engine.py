"""Simulated query engine that returns constant text, measured values or telemetry."""

import asyncio
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from shared.errors import Kind, WorkspaceError
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

if TYPE_CHECKING:
    from tests.simulation.world import World

_TEXT: Final = re.compile(r"print Text = '([^']*)'")
_COLUMNS: Final = (Column("Text", "string"), Column("Value", "real"))
_SKIPPED: Final = re.compile(r"_oi_row > (\d+)")
_LIST: Final = re.compile(r"ConnectionLookup in \(([^)]*)\)")
_TELEMETRY: Final = (
    Column("Timestamp", "datetime"),
    Column("ConnectionLookup", "string"),
    Column("SurfaceLookups", "dynamic"),
    Column("DeviceId", "string"),
    Column("MessageId", "string"),
    Column("Payload", "string"),
)


@dataclass(frozen=True)
class TelemetryRow:
    """Row of the query table Telemetry.

    Attributes:
        at: time of the measurement.
        connection: connection of the message.
        message: id of the message.
        payload: its content.
    """

    at: datetime
    connection: str
    message: str
    payload: Any


class SimulatedEngine:
    """Fake of the query engine that is sometimes slow or unavailable, according to the faults of the world.

    A query ``print Text = 'x'`` has one row with this text and the value that ``World.measured`` has for it, else 0.
    The query of the live stream's replay reads ``World.telemetry``.

    Args:
        world: world of the engine.
    """

    def __init__(self, world: "World") -> None:
        self._world = world

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return the result of a query; first wait or raise an injected outage, at random."""
        world = self._world
        faults, draw = world.faults, world.random.random
        await asyncio.sleep(draw() * (10 if draw() < faults.slow else 0.05))
        if draw() < faults.busy:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The engine is not available.")
        if _LIST.search(query.text):
            return EngineResult(_TELEMETRY, self._select_telemetry(query), 1.0, size=len(query.text))
        found = _TEXT.search(query.text)
        text = found[1] if found else ""
        return EngineResult(_COLUMNS, [[text, world.measured.get(text, 0.0)]], 1.0, size=len(query.text))

    def _select_telemetry(self, query: EngineQuery) -> list[list[Any]]:
        """Return the rows that a replay query selects by connection, time range and position, oldest first."""
        since, until = (
            parse_rfc3339(bound.removeprefix("datetime(").removesuffix(")")) for bound in query.parameters.values()
        )
        listed = _LIST.search(query.text)
        connections = [] if listed is None else [name.strip(' "') for name in listed[1].split(",")]
        rows = [row for row in self._world.telemetry if row.connection in connections and since <= row.at < until]
        rows.sort(key=lambda row: (row.at, row.connection, len(row.message), row.message))
        skipped = _SKIPPED.search(query.text)
        return [
            [format_rfc3339(row.at), row.connection, ["hall"], row.connection, row.message, json.dumps(row.payload)]
            for row in rows[int(skipped[1]) if skipped else 0 :][: query.max_records]
        ]

    async def ping(self) -> None:
        """Do nothing, because the simulated engine is always reachable."""
