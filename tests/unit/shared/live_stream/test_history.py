"""Tests of reading stored messages page by page."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.errors import WorkspaceError
from shared.live_stream import history
from shared.live_stream.history import History
from shared.timestamps import format_rfc3339
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("Timestamp", "ConnectionLookup", "SurfaceLookups", "DeviceId", "MessageId", "Payload")
TYPES = ("datetime", "string", "dynamic", "string", "string", "dynamic")
COLUMNS = tuple(Column(name, kind) for name, kind in zip(NAMES, TYPES, strict=True))


class Engine:
    """Fake query engine with a message at each of the given seconds.

    Attributes:
        limits: maximum number of rows of each query.
    """

    def __init__(self, *seconds: int) -> None:
        self.times = [(START + timedelta(seconds=second), f"m{number}") for number, second in enumerate(seconds)]
        self.limits: list[int] = []
        self.texts: list[str] = []

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return the messages from the query's lower bound on."""
        self.limits.append(query.max_records)
        self.texts.append(query.text)
        since = datetime.fromisoformat(query.parameters["_oi_from"].removeprefix("datetime(").removesuffix(")"))
        rows: list[list[Any]] = [
            [format_rfc3339(at), "rig", '["cooling"]', "d", name, '{"n":1}'] for at, name in self.times if at >= since
        ]
        return EngineResult(COLUMNS, rows[: query.max_records], 0.0)

    async def ping(self) -> None:
        """Do nothing, because this fake engine is always reachable."""


async def read_pages(engine: Engine, rows: int, connections: tuple[str, ...] = ("rig",)) -> list[list[str]]:
    """Return the message ids of each page."""
    pages = History(engine, rows).read_pages(connections, START)
    return [[each.key[1] for each in page] async for page in pages]


async def test_a_page_starts_at_the_last_time_of_the_page_before() -> None:
    """A page begins at the last time of the page before, so that no message of this time is missed."""
    assert await read_pages(Engine(0, 1, 2, 2, 3), 3) == [["m0", "m1", "m2"], ["m2", "m3", "m4"], ["m4"]]


async def test_many_messages_of_one_time_need_a_larger_page() -> None:
    """If all messages of a page have the same time, the page is read again with a larger size."""
    engine = Engine(*[0] * 5, 1)
    assert await read_pages(engine, 2) == [["m0", "m1"], [f"m{number}" for number in range(6)]]
    assert engine.limits == [2, 8]


async def test_a_history_page_over_the_maximum_size_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page over the maximum size is rejected with the parameter that the caller can change."""
    monkeypatch.setattr(history, "MAX_PAGE_ROWS", 2)
    with pytest.raises(WorkspaceError) as raised:
        await read_pages(Engine(*[0] * 5), 2)
    assert (raised.value.code, "since" in raised.value.detail) == ("QUERY_TOO_LARGE", True)


async def test_a_history_without_connections_executes_no_query() -> None:
    """If a listener selects no connections, its history is empty, and no query is executed."""
    engine = Engine(0)
    assert await read_pages(engine, 2, ()) == []
    assert engine.limits == []
    await read_pages(engine, 2, ("rig", "press"))
    assert 'in ("rig", "press")' in engine.texts[0]
