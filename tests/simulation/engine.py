"""Query engine of a simulated world: returns a text that the query contains, and measured values."""

import asyncio
import re
from typing import TYPE_CHECKING, Final

from shared.errors import Kind, WorkspaceError
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

if TYPE_CHECKING:
    from tests.simulation.world import World

_TEXT: Final = re.compile(r"print Text = '([^']*)'")
_COLUMNS: Final = (Column("Text", "string"), Column("Value", "real"))


class SimulatedEngine:
    """Implementation of QueryEngine that is slow or unavailable as the faults of its world demand.

    A query ``print Text = 'x'`` has one row with this text and the value that ``World.measured`` has for it, else 0.

    Args:
        world: world of the engine.
    """

    def __init__(self, world: "World") -> None:
        self._world = world

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return the row of a query, or fail."""
        world = self._world
        faults, draw = world.faults, world.random.random
        await asyncio.sleep(draw() * (10 if draw() < faults.slow else 0.05))
        if draw() < faults.busy:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The engine is not available.")
        found = _TEXT.search(query.text)
        text = found[1] if found else ""
        return EngineResult(_COLUMNS, [[text, world.measured.get(text, 0.0)]], 1.0)

    async def ping(self) -> None:
        """Do nothing."""
