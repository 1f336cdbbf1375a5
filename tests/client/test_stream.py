"""Tests of reconnection of the live stream."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from oi import AsyncWorkspace
from oi._async import stream as module
from websockets.exceptions import ConnectionClosedError


def build_message(number: int, moment: datetime, connection: str = "rig") -> str:
    """Return the text of a live message."""
    metadata = {"ConnectionLookup": connection}
    return json.dumps({"ID": f"m-{number}", "Timestamp": moment.isoformat(), "Metadata": metadata, "Payload": {}})


class FakeService:
    """Service whose connections end after their messages."""

    def __init__(self, *connections: list[str]) -> None:
        self.connections = list(connections)
        self.starts: list[datetime | None] = []

    @asynccontextmanager
    async def connect(self, url: str, **_options: Any) -> AsyncIterator[AsyncIterator[str]]:
        """Open the next connection."""
        since = parse_qs(urlsplit(url).query).get("since")
        self.starts.append(datetime.fromisoformat(since[0]) if since else None)
        yield self._send(self.connections.pop(0))

    async def _send(self, texts: list[str]) -> AsyncIterator[str]:
        for text in texts:
            yield text
        raise ConnectionClosedError(None, None)


async def read(service: FakeService, count: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return connection and id of a number of messages."""

    async def skip(_seconds: float) -> None:
        pass

    monkeypatch.setattr(module, "connect", service.connect)
    monkeypatch.setattr(module, "sleep", skip)
    found = []
    async with AsyncWorkspace("https://plant.example", token="t") as workspace:
        stream = workspace.stream()
        async for message in stream:
            found.append((message["Metadata"]["ConnectionLookup"], message["ID"]))
            if len(found) == count:
                await stream.aclose()
                break
    return found


async def test_a_lost_stream_continues_without_gap_or_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a lost connection the stream requests the messages that it may have missed, and drops repeated ones."""
    now = datetime.now(UTC)
    first = [build_message(1, now - timedelta(seconds=3)), build_message(2, now - timedelta(seconds=2))]
    service = FakeService(first, [*first, build_message(3, now)])
    assert await read(service, 3, monkeypatch) == [("rig", "m-1"), ("rig", "m-2"), ("rig", "m-3")]
    start = service.starts[1]
    assert service.starts[0] is None
    assert start is not None
    assert start < now - timedelta(seconds=3)


async def test_equal_ids_of_two_connections_are_two_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal message ids of two connections belong to two messages."""
    now = datetime.now(UTC)
    service = FakeService([build_message(1, now), build_message(1, now, "press"), build_message(1, now)], [])
    assert await read(service, 2, monkeypatch) == [("rig", "m-1"), ("press", "m-1")]


async def test_a_clock_that_is_ahead_causes_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream continues from the time at which the last message arrived, not from a timestamp in the future."""
    now = datetime.now(UTC)
    ahead = build_message(1, now + timedelta(minutes=5))
    service = FakeService([ahead], [build_message(2, now)])
    await read(service, 2, monkeypatch)
    start = service.starts[1]
    assert start is not None
    assert start <= datetime.now(UTC) - timedelta(seconds=50)
