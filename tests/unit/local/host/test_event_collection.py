"""Tests that a consumer group collects the events of a burst."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from local.host import event_hubs
from local.host.event_hubs import EventHubSetting, PartitionLoop
from local.host.hub_access import HubAccess
from local.host.shutdown import ShutdownSignal
from local.host.worker import LoadedFunction
from shared.backends.embedded.hub import HubReader, StoredEvent
from tests.virtual_time import run_in_virtual_time

FUNCTION = LoadedFunction("archive", "id", {"name": "events", "type": "eventHubTrigger"}, None)
COLLECT_SECONDS = 5.0
BATCH_SIZE = 100


class _GrowingHub(HubAccess):
    """Fake hub with one partition, to which a test appends events; it needs no file and no thread."""

    def __init__(self) -> None:
        super().__init__(Path("unused"), timedelta(hours=72))
        self._events: list[StoredEvent] = []

    def append(self, event_count: int = 1) -> None:
        """Append events to the partition and wake its readers."""
        first = len(self._events) + 1
        self._events += [StoredEvent(first + index, 0, "key", "{}", b"x") for index in range(event_count)]
        self._wake_waiters([("impulses", "0")])

    async def run_with_reader[T](self, function: Callable[[HubReader], T]) -> T:
        """Call a function with this hub as the reader."""
        return function(cast("HubReader", self))

    def read_rows(self, _hub: str, _partition: str, after: int, limit: int) -> list[StoredEvent]:
        """Return the events after a sequence number."""
        return self._events[after : after + limit]

    def read_last_assigned_sequence_number(self, *_: str) -> int:
        """Return the sequence number of the newest event."""
        return len(self._events)

    def read_offset(self, *_: str) -> int:
        """Return the offset of a group that has read nothing."""
        return 0

    def store_offset(self, *_: object) -> None:
        """Ignore the offset."""


async def _deliver(
    arrivals: Sequence[tuple[float, int]], collect_seconds: float, call_seconds: float = 0
) -> list[tuple[float, int]]:
    """Append events at the given seconds; return the seconds and sizes of the batches that the function received.

    Args:
        arrivals: seconds and numbers of the events.
        collect_seconds: maximum number of seconds between two turns.
        call_seconds: seconds that each call of the function takes.
    """
    hub, stopping, delivered = _GrowingHub(), ShutdownSignal(), list[tuple[float, int]]()
    loop = asyncio.get_running_loop()

    async def invoke_function(_function: LoadedFunction, data: Any, **_: Any) -> None:
        delivered.append((round(loop.time(), 3), len(data.collection_bytes.bytes)))
        await asyncio.sleep(call_seconds)

    for seconds, event_count in arrivals:
        loop.call_later(seconds, hub.append, event_count)
    setting = EventHubSetting(FUNCTION, "impulses", "archive", many=True, binary=True, collect_seconds=collect_seconds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_hubs, "invoke_function", invoke_function)
        running = asyncio.create_task(PartitionLoop(setting, "0", hub, BATCH_SIZE, stopping).run())
        await asyncio.sleep(60)
        stopping.set()
        hub.append()
        await running
    return delivered


@pytest.mark.parametrize(
    ("arrivals", "collect_seconds", "expected"),
    [
        pytest.param([(1, 3), (1.2, 4)], COLLECT_SECONDS, [(1, 3), (1.7, 4)], id="half a second without events"),
        pytest.param([(1, 3), (3, 4)], COLLECT_SECONDS, [(1, 3), (3, 4)], id="a later event is delivered at once"),
        pytest.param(
            [(1 + tenth / 10, 1) for tenth in range(100)],
            COLLECT_SECONDS,
            [(1, 1), (6, 50), (11, 49)],
            id="a burst that takes longer than the maximum",
        ),
        pytest.param(
            [(1, 250), (1.2, 1)],
            COLLECT_SECONDS,
            [(1, 100), (1, 100), (1, 50), (1.7, 1)],
            id="no wait before all events are delivered that were there at the beginning",
        ),
        pytest.param(
            [(1, 1), *((1 + tenth / 10, 100) for tenth in range(1, 45))],
            COLLECT_SECONDS,
            [(1, 1), *([(5.9, 100)] * 44)],
            id="a burst of full batches",
        ),
        pytest.param([(1, 3), (1.2, 4)], 0, [(1, 3), (1.2, 4)], id="a group that collects nothing"),
    ],
)
def test_a_group_collects_events_while_they_arrive(
    arrivals: Sequence[tuple[float, int]], collect_seconds: float, expected: Sequence[tuple[float, int]]
) -> None:
    """A group that collects events waits until none has arrived for half a second, at most for five seconds."""
    assert run_in_virtual_time(_deliver(arrivals, collect_seconds))[: len(expected)] == expected


def test_a_slow_group_does_not_wait() -> None:
    """A group whose turn takes longer than the maximum receives the next events without a wait."""
    arrivals = [(1 + tenth / 10, 20) for tenth in range(200)]
    delivered = run_in_virtual_time(_deliver(arrivals, COLLECT_SECONDS, call_seconds=6))
    assert [seconds for seconds, _ in delivered[:8]] == [1 + 6 * number for number in range(8)]


def test_a_stopping_host_does_not_collect_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that stops during the wait for more events ends the loop without another batch."""

    async def stop_while_collecting() -> list[int]:
        hub, stopping, delivered = _GrowingHub(), ShutdownSignal(), list[int]()
        loop = asyncio.get_running_loop()

        async def invoke_function(_function: LoadedFunction, data: Any, **_: Any) -> None:
            delivered.append(len(data.collection_bytes.bytes))

        monkeypatch.setattr(event_hubs, "invoke_function", invoke_function)
        setting = EventHubSetting(
            FUNCTION, "impulses", "archive", many=True, binary=True, collect_seconds=COLLECT_SECONDS
        )
        hub.append(3)
        loop.call_later(0.1, stopping.set)
        loop.call_later(0.2, hub.append, 4)
        await PartitionLoop(setting, "0", hub, BATCH_SIZE, stopping).run()
        return delivered

    assert run_in_virtual_time(stop_while_collecting()) == [3]
