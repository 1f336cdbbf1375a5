"""Query table of a simulated world to which imports add rows."""

import asyncio
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from shared.errors import Kind, WorkspaceError

if TYPE_CHECKING:
    from tests.simulation.world import World


class SimulatedTable:
    """Fake of the query table that all processes share; injected faults make the table slow or unavailable.

    Args:
        world: world of the table.

    Attributes:
        names: ids of the messages in the table.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._tags: set[str] = set()
        self.names: set[str] = set()

    async def ingest(self, blob_name: str, ingestion_tag: str) -> None:
        """Add the rows of a file unless its tag is known; an injected error can hide that the rows were added."""
        faults, draw = self._world.faults, self._world.random.random
        await asyncio.sleep(draw() * (10 if draw() < faults.slow else 0.05))
        if draw() < faults.busy:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The engine is not available.")
        if ingestion_tag not in self._tags:
            path = self._world.folder / "blobs" / "downloads" / blob_name
            if not path.exists():
                raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The file does not exist.")
            self._tags.add(ingestion_tag)
            self.names |= set(pq.read_table(path).column("MessageId").to_pylist())
            self._world.trace(f"the table gets {ingestion_tag}")
        if draw() < faults.reply_lost:
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "The reply was lost.")
