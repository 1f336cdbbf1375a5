"""The queue of one client: order, bounds, pace."""

import asyncio
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from emulators.web_pubsub.outbox import MAX_BYTES, MAX_MESSAGES, Outbox


class Pipe:
    """A socket that takes what it is told to take."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.open = True
        self._call: Callable[[], None] = lambda: None

    def has_room(self) -> bool:
        """Return whether there is room."""
        return self.open

    def write(self, data: bytes) -> None:
        """Take data."""
        self.taken.append(data)

    def buffered_bytes(self) -> int:
        """Return that nothing waits."""
        return 0

    def call_on_room(self, call: Callable[[], None]) -> None:
        """Keep whom to call."""
        self._call = call

    def end(self, _code: int, _reason: str) -> None:
        """Have no room any more."""
        self.open = False

    def set_room(self, *, room: bool) -> None:
        """Have room from now on, or none."""
        self.open = room
        if room:
            self._call()


async def taken(pipe: Pipe, size: int) -> None:
    """Return once the pipe took so many bytes; frames of a busy stream wait a moment for each other."""
    async with asyncio.timeout(30):
        while sum(map(len, pipe.taken)) < size:  # noqa: ASYNC110  the outbox tells nobody when it has written
            await asyncio.sleep(0.001)


def outbox(pipe: Pipe) -> tuple[Outbox, list[str]]:
    """Return an outbox over a pipe, and where it notes that it overflowed."""
    overflows: list[str] = []
    return Outbox(pipe, lambda: overflows.append("overflow")), overflows


@given(st.lists(st.one_of(st.binary(min_size=1, max_size=70_000), st.booleans()), max_size=60))
def test_whatever_the_socket_does_the_order_stays(steps: list[bytes | bool]) -> None:
    """Frames arrive whole, once and in order, however the socket's room comes and goes between them."""

    async def run() -> None:
        pipe = Pipe()
        box, overflows = outbox(pipe)
        for step in steps:
            if isinstance(step, bytes):
                box.put(step)
            else:
                pipe.set_room(room=step)
            await asyncio.sleep(0)
        pipe.set_room(room=True)
        await taken(pipe, sum(len(step) for step in steps if isinstance(step, bytes)))
        assert b"".join(pipe.taken) == b"".join(step for step in steps if isinstance(step, bytes))
        assert not overflows

    asyncio.run(run())


async def test_frames_of_one_turn_leave_in_one_write() -> None:
    """What is put before the event loop turns is written together, up to 64 KiB a write."""
    pipe = Pipe()
    box, _ = outbox(pipe)
    for _ in range(100):
        box.put(b"x" * 1000)
    await taken(pipe, 100_000)
    assert [len(write) for write in pipe.taken] == [65_000, 35_000]


async def test_the_bounds_are_ten_thousand_messages_and_four_mebibytes() -> None:
    """One message or one byte over a bound gives the client up, once; nothing is taken or written afterwards."""
    for build_frame, most in ((b"x", MAX_MESSAGES), (b"x" * 4096, MAX_BYTES // 4096)):
        pipe = Pipe()
        box, overflows = outbox(pipe)
        pipe.set_room(room=False)
        for _ in range(most):
            box.put(build_frame)
        assert not overflows
        box.put(b"y")
        box.put(b"z")
        assert overflows == ["overflow"]
        pipe.set_room(room=True)
        await asyncio.sleep(0)
        assert pipe.taken == []


async def test_paced_frames_wait_until_everything_before_was_taken() -> None:
    """A paced frame is put once the socket took what was put before."""
    pipe = Pipe()
    box, _ = outbox(pipe)
    pipe.set_room(room=False)
    box.put(b"before")
    paced = asyncio.create_task(box.put_when_drained(b"paced"))
    await asyncio.sleep(0)
    assert not paced.done()
    pipe.set_room(room=True)
    assert await paced
    await taken(pipe, len(b"beforepaced"))
    assert pipe.taken == [b"before", b"paced"]


async def test_paced_frames_do_not_wait_for_a_client_that_is_gone() -> None:
    """Who waits is told when the client goes, and its frame is not written."""
    pipe = Pipe()
    box, _ = outbox(pipe)
    pipe.set_room(room=False)
    paced = asyncio.create_task(box.put_when_drained(b"paced"))
    await asyncio.sleep(0)
    box.discard()
    assert not await paced
    assert pipe.taken == []
