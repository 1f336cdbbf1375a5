"""Tests of a client's outbox: order, limits and pace."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulators.web_pubsub import outbox
from emulators.web_pubsub.outbox import MAX_BYTES, MAX_MESSAGES, Outbox


class Pipe:
    """Fake socket of a client, which accepts data only while it has room."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.open = True
        self._call: Callable[[], None] = lambda: None

    def can_accept_data(self) -> bool:
        """Return whether the fake socket accepts data."""
        return self.open

    def write(self, data: bytes) -> None:
        """Receive data from the outbox."""
        self.taken.append(data)

    def count_buffered_bytes(self) -> int:
        """Return 0, because this fake sends data at once."""
        return 0

    def call_when_writable(self, call: Callable[[], None]) -> None:
        """Store the function that must be called when the socket accepts data again."""
        self._call = call

    def close_with_code(self, _code: int, _reason: str) -> None:
        """Close the fake socket."""
        self.open = False

    def set_room(self, *, room: bool) -> None:
        """Set whether the fake socket accepts data."""
        self.open = room
        if room:
            self._call()


async def wait_for_bytes(pipe: Pipe, size: int) -> None:
    """Wait until the fake socket has received this number of bytes."""
    async with asyncio.timeout(30):
        while sum(map(len, pipe.taken)) < size:  # noqa: ASYNC110  the outbox has no signal for a write
            await asyncio.sleep(0.001)


def build_outbox(pipe: Pipe) -> tuple[Outbox, list[str]]:
    """Return an outbox with a fake socket, and a list that records its overflows."""
    overflows: list[str] = []
    return Outbox(pipe, lambda: overflows.append("overflow")), overflows


@given(st.lists(st.one_of(st.binary(min_size=1, max_size=70_000), st.booleans()), max_size=60))
def test_outbox_frames_arrive_once_and_in_order(steps: list[bytes | bool]) -> None:
    """Frames in the outbox arrive once and in order, even if the socket stops accepting data again and again."""

    async def run() -> None:
        pipe = Pipe()
        box, overflows = build_outbox(pipe)
        for step in steps:
            if isinstance(step, bytes):
                box.put_and_check_if_wait_needed(step)
            else:
                pipe.set_room(room=step)
            await asyncio.sleep(0)
        pipe.set_room(room=True)
        await wait_for_bytes(pipe, sum(len(step) for step in steps if isinstance(step, bytes)))
        assert b"".join(pipe.taken) == b"".join(step for step in steps if isinstance(step, bytes))
        assert not overflows

    asyncio.run(run())


async def test_frames_of_one_event_loop_turn_are_written_together() -> None:
    """Frames that are sent in one turn of the event loop are written together, up to 64 KiB."""
    pipe = Pipe()
    box, _ = build_outbox(pipe)
    for _ in range(100):
        box.put_and_check_if_wait_needed(b"x" * 1000)
    await wait_for_bytes(pipe, 100_000)
    assert [len(write) for write in pipe.taken] == [65_000, 35_000]


async def test_an_outbox_over_its_limits_is_closed() -> None:
    """A frame beyond 10,000 messages or 4 MiB closes the outbox, which then drops all frames."""
    for frame, most in ((b"x", MAX_MESSAGES), (b"x" * 4096, MAX_BYTES // 4096)):
        pipe = Pipe()
        box, overflows = build_outbox(pipe)
        pipe.set_room(room=False)
        for _ in range(most):
            box.put_and_check_if_wait_needed(frame)
        assert not overflows
        box.put_and_check_if_wait_needed(b"y")
        box.put_and_check_if_wait_needed(b"z")
        assert overflows == ["overflow"]
        pipe.set_room(room=True)
        await asyncio.sleep(0)
        assert pipe.taken == []


async def test_a_sender_waits_for_a_client_that_reads() -> None:
    """If half of the queue is used, the sender is asked to wait until the client has read enough."""
    pipe = Pipe()
    box, overflows = build_outbox(pipe)
    pipe.set_room(room=False)
    frames = MAX_BYTES // 2 // 4096
    assert [box.put_and_check_if_wait_needed(b"x" * 4096) for _ in range(frames)] == [False] * frames
    assert box.put_and_check_if_wait_needed(b"x")
    waiting = asyncio.create_task(box.wait_for_queue_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    pipe.set_room(room=True)
    await waiting
    assert not overflows


async def test_a_client_that_reads_at_the_last_moment_is_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client does not count as slow if it accepts data in the turn of the event loop in which its time ends."""
    monkeypatch.setattr(outbox, "ROOM_SECONDS", 0.0)
    pipe = Pipe()
    box, _ = build_outbox(pipe)
    pipe.set_room(room=False)
    for _ in range(MAX_MESSAGES // 2 + 1):
        box.put_and_check_if_wait_needed(b"x")
    asyncio.get_running_loop().call_soon(partial(pipe.set_room, room=True))
    await box.wait_for_queue_room()
    pipe.set_room(room=False)
    assert [box.put_and_check_if_wait_needed(b"x") for _ in range(MAX_MESSAGES // 2 + 1)][-1]


async def test_a_sender_does_not_wait_for_a_slow_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not read in time is not waited for again until it has read enough."""
    monkeypatch.setattr(outbox, "ROOM_SECONDS", 0.0)
    pipe = Pipe()
    box, _ = build_outbox(pipe)
    pipe.set_room(room=False)
    for _ in range(MAX_MESSAGES // 2):
        box.put_and_check_if_wait_needed(b"x")
    assert box.put_and_check_if_wait_needed(b"x")
    await box.wait_for_queue_room()
    assert not box.put_and_check_if_wait_needed(b"x")
    pipe.set_room(room=True)
    await wait_for_bytes(pipe, MAX_MESSAGES // 2 + 2)
    pipe.set_room(room=False)
    assert [box.put_and_check_if_wait_needed(b"x") for _ in range(MAX_MESSAGES // 2 + 1)][-1]


async def test_paced_frames_wait_for_earlier_frames() -> None:
    """A frame that is sent with pacing waits until all earlier frames are written."""
    pipe = Pipe()
    box, _ = build_outbox(pipe)
    pipe.set_room(room=False)
    box.put_and_check_if_wait_needed(b"before")
    paced = asyncio.create_task(box.try_put_when_drained(b"paced"))
    await asyncio.sleep(0)
    assert not paced.done()
    pipe.set_room(room=True)
    assert await paced
    await wait_for_bytes(pipe, len(b"beforepaced"))
    assert pipe.taken == [b"before", b"paced"]


async def test_paced_frames_stop_waiting_after_a_disconnect() -> None:
    """If the client disconnects, a waiting paced frame is not written, and its sender stops waiting."""
    pipe = Pipe()
    box, _ = build_outbox(pipe)
    pipe.set_room(room=False)
    paced = asyncio.create_task(box.try_put_when_drained(b"paced"))
    await asyncio.sleep(0)
    box.discard_and_close()
    assert not await paced
    assert pipe.taken == []
