"""Tests of reading stored messages page by page."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.errors import Kind, WorkspaceError
from shared.live_stream.history import History
from shared.runtime import LARGE, Runtime
from shared.timestamps import format_rfc3339
from shared.warm_queries.ports import Column, EngineQuery, EngineResult

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("Timestamp", "ConnectionLookup", "SurfaceLookups", "DeviceId", "MessageId", "Payload")
TYPES = ("datetime", "string", "dynamic", "string", "string", "string")
COLUMNS = tuple(Column(name, kind) for name, kind in zip(NAMES, TYPES, strict=True))
LARGE_PAYLOAD = 5_000
_LARGE = json.dumps({"text": "x" * LARGE_PAYLOAD})
_SKIPPED = re.compile(r"_oi_row > (\d+)")


class Engine:
    """Fake query engine with a message at each of the given seconds.

    Attributes:
        limits: maximum number of rows of each query.
        payload: payload of all messages that are not large; None for a null.
        large_ids: ids of the messages with a payload of more than ``LARGE_PAYLOAD`` bytes.
        row_bytes: size of each row in the engine's reply.
        most_rows: number of rows above which the result is too large.
    """

    def __init__(self, *seconds: int) -> None:
        self.times = [(START + timedelta(seconds=second), f"m{number}") for number, second in enumerate(seconds)]
        self.limits: list[int] = []
        self.texts: list[str] = []
        self.payload: str | None = '{"n":1}'
        self.large_ids: set[str] = set()
        self.row_bytes = 0
        self.most_rows = 10_000

    async def execute(self, query: EngineQuery) -> EngineResult:
        """Return the messages between the query's bounds, without the rows that the query skips."""
        self.limits.append(query.max_records)
        self.texts.append(query.text)
        since, until = (
            datetime.fromisoformat(bound.removeprefix("datetime(").removesuffix(")"))
            for bound in query.parameters.values()
        )
        skipped = _SKIPPED.search(query.text)
        rows: list[list[Any]] = [
            [format_rfc3339(at), "rig", '["cooling"]', "d", name, _LARGE if name in self.large_ids else self.payload]
            for at, name in self.times
            if since <= at < until
        ][int(skipped[1]) if skipped else 0 :]
        page = rows[: query.max_records]
        if len(page) > self.most_rows:
            raise WorkspaceError(Kind.INVALID, "QUERY_TOO_LARGE", "The result is too large.")
        return EngineResult(COLUMNS, page, 0.0, size=len(page) * self.row_bytes)

    async def ping(self) -> None:
        """Do nothing, because this fake engine is always reachable."""


async def read_pages(engine: Engine, rows: int, connection_lookups: tuple[str, ...] = ("rig",)) -> list[list[str]]:
    """Return the message ids of each page."""
    pages = [page async for page in History(engine, rows).read_pages(connection_lookups, START)]
    assert [page.is_last for page in pages] == [False] * (len(pages) - 1) + [True]
    return [[each.key[1] for each in page.impulses] for page in pages]


async def test_a_page_starts_at_the_last_time_of_the_page_before() -> None:
    """A page begins at the last time of the page before, so that no message of this time is missed."""
    assert await read_pages(Engine(0, 1, 2, 2, 3), 3) == [["m0", "m1", "m2"], ["m2", "m3", "m4"], ["m4"]]
    assert await read_pages(Engine(0, 0), 2) == [["m0", "m1"], []]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
async def test_many_messages_of_one_time_are_read_in_pages_of_the_same_size(count: int) -> None:
    """If more messages than a page have the same time, further pages of the same size contain the others."""
    engine = Engine(*[0] * count, 1, 2)
    pages = await read_pages(engine, 2)
    assert list(dict.fromkeys(name for page in pages for name in page)) == [f"m{number}" for number in range(count + 2)]
    assert set(engine.limits) == {2}


@pytest.mark.parametrize("seconds", [list(range(500)), [0] * 500], ids=["different-times", "one-time"])
async def test_pages_of_large_messages_are_shorter(seconds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the engine rejects the size of a page, shorter pages contain all messages."""
    engine = Engine(*seconds)
    engine.most_rows = 100
    monkeypatch.setattr("shared.live_stream.history.MAX_PAGE_BYTES", 50 * await get_impulse_size())
    pages = await read_pages(engine, 5_000)
    assert list(dict.fromkeys(name for page in pages for name in page)) == [f"m{number}" for number in range(500)]
    assert max(map(len, pages)) <= 100
    # The engine rejects a size only once, because 40 messages fill most of a page.
    assert engine.limits[:4] == [5_000, 1_000, 200, 40]
    assert set(engine.limits[4:]) == {40}


async def get_impulse_size() -> int:
    """Return the size in bytes of the first message of a fake engine as an impulse."""
    [page] = [page async for page in History(Engine(0)).read_pages(("rig",), START)]
    return len(page.impulses[0].text)


@pytest.mark.parametrize("seconds", [list(range(50)), [0] * 50], ids=["different-times", "one-time"])
async def test_a_page_has_a_limited_size(seconds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A page ends before the message with which it would have too many bytes, and later pages have as few messages."""
    engine = Engine(*seconds)
    monkeypatch.setattr("shared.live_stream.history.MAX_PAGE_BYTES", 10 * await get_impulse_size() + 50)
    pages = await read_pages(engine, 5_000)
    assert list(dict.fromkeys(name for page in pages for name in page)) == [f"m{number}" for number in range(50)]
    assert max(map(len, pages)) == 10
    # Only the first page requests more messages than it may have.
    assert set(engine.limits[1:]) == {10}
    monkeypatch.setattr("shared.live_stream.history.MAX_PAGE_BYTES", 0)
    assert max(map(len, await read_pages(engine, 5_000))) == 1


@pytest.mark.parametrize("seconds", [list(range(500)), [0] * 500], ids=["different-times", "one-time"])
async def test_pages_of_small_messages_after_large_ones_are_longer_again(
    seconds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of messages of a page doubles, up to the normal number, while pages are less than half full."""
    engine = Engine(*seconds)
    engine.large_ids = {f"m{number}" for number in range(40)}
    monkeypatch.setattr("shared.live_stream.history.MAX_PAGE_BYTES", 10 * LARGE_PAYLOAD)
    pages = await read_pages(engine, 100)
    assert list(dict.fromkeys(name for page in pages for name in page)) == [f"m{number}" for number in range(500)]
    assert max(map(len, pages)) == 100
    assert engine.limits[1] < 10
    assert engine.limits[-3:] == [100, 100, 100]


async def test_a_page_that_is_always_too_large_is_an_error() -> None:
    """If the engine rejects even the shortest page, the replay fails instead of asking forever."""
    engine = Engine(0, 1)
    engine.most_rows = 1
    with pytest.raises(WorkspaceError, match="too large"):
        await read_pages(engine, 5_000)


async def test_payloads_are_copied() -> None:
    """The payload of an impulse is the text that the engine returns; an absent payload becomes an empty object."""
    engine = Engine(0)
    engine.payload = '{"exact":1.50,"long":123456789012345678901234567890}'
    texts = [each.text async for page in History(engine).read_pages(("rig",), START) for each in page.impulses]
    metadata = b'{"ConnectionLookup":"rig","SurfaceLookups":["cooling"]}'
    assert texts == [
        b'{"ID":"m0","Timestamp":"2026-01-01T00:00:00.000000Z","Source":"DataConnection","Subject":"d","Headers":{},'
        + b'"Metadata":%b,"Payload":%b}' % (metadata, engine.payload.encode())
    ]
    engine.payload = None
    [page] = [page async for page in History(engine).read_pages(("rig",), START)]
    assert json.loads(page.impulses[0].text)["Payload"] == {}


class RecordingPool(ThreadPoolExecutor):
    """Thread pool that counts its jobs."""

    jobs = 0

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Count a job and start it."""
        self.jobs += 1
        return super().submit(function, *args, **kwargs)


async def test_large_pages_are_converted_in_slices_in_a_worker_thread() -> None:
    """The rows of a large page are converted in a worker thread, at most 500 rows in one job."""
    engine = Engine(*range(1_001))
    engine.row_bytes = LARGE
    with RecordingPool(1) as pool:
        history = History(engine, runtime=Runtime(open_pool=lambda *_: pool))
        [page] = [page async for page in history.read_pages(("rig",), START)]
        assert [each.key for each in page.impulses] == [("rig", f"m{number}") for number in range(1_001)]
        assert pool.jobs == 3


async def test_a_history_without_connections_executes_no_query() -> None:
    """If a listener selects no connections, the only page of its history is empty, and no query is executed."""
    engine = Engine(0)
    assert await read_pages(engine, 2, ()) == [[]]
    assert engine.limits == []
    await read_pages(engine, 2, ("rig", "press"))
    assert 'in ("rig", "press")' in engine.texts[0]
