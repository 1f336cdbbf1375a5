"""The far end of a long walk: windows from the last one down, walked options while the walk comes towards them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Final, Protocol, runtime_checkable

from shared.observability import logs
from shared.provenance.chain_verification import ChainVerification, content_time, to_rows
from shared.provenance.hash_rule import is_time
from shared.provenance.ports import ChainKey, ChainStore, Row, RowStreams

WINDOW_RECORDS: Final = 20_000
PAGE_RECORDS: Final = 1_000
PAGE_BYTES: Final = 8_000_000


async def stream_records(
    store: ChainStore, chain: ChainKey, walk: ChainVerification, last: int, stop: int | None = None
) -> None:
    """Walk over some next records of a chain; the walk's sequence stays the same when there are none.

    Args:
        store: keeps the chain; one that streams rows is walked without a record made of each.
        chain: which chain.
        walk: goes on after its sequence.
        last: highest sequence to walk over.
        stop: where to pause, at least the next sequence; None to pause where it suits.

    Raises:
        WorkspaceError: the store's UNAVAILABLE.
    """
    before = walk.sequence
    if isinstance(store, RowStreams):
        await store.stream(chain, before + 1, min(last, stop or before + WINDOW_RECORDS), _restartable(walk))
        if walk.sequence > before or walk.fault is not None:
            return
    # Also when a window is empty: a gap may be longer than it.
    page = await store.read(chain, before, limit=min(PAGE_RECORDS, last - before), max_bytes=PAGE_BYTES)
    records = [record for record in page.records if record.sequence <= last]
    await asyncio.to_thread(walk.verify_rows, to_rows(records))


def _restartable(walk: ChainVerification) -> Callable[[Iterable[Row]], None]:
    """Return what walks over rows from where the walk stands now, however often it is called."""
    start = {field.name: getattr(walk, field.name) for field in fields(walk)}
    tree = deepcopy(walk.tree)

    def over(rows: Iterable[Row]) -> None:
        for name, value in (start | {"tree": deepcopy(tree)}).items():
            setattr(walk, name, value)
        walk.verify_rows(rows)

    return over


WINDOW: Final = 8_192
"""A power of two, so that a window's tree fits the chain's."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """Which window to walk.

    Attributes:
        chain: which chain.
        first: lowest sequence, at least 2.
        last: highest sequence, inclusive.
        leaves: as of :class:`ChainVerification`.
    """

    chain: ChainKey
    first: int
    last: int
    leaves: int


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What a sound window leads to, given that the record before it is the one that was read there.

    Attributes:
        sound: every record of the window is there once and sound; nothing else holds when it is false.
        last: the last sequence.
        before: ``Hash`` of the record before the window, as it is stored; whether it deserves that is not known here.
        since: the time of that record.
        hash: ``Hash`` of the last record.
        claimed: its PreviousHash.
        time: its own.
        leaves: how many leaves the window has for the tree.
        nodes: roots of the complete subtrees of these leaves, the largest first, as hex.
    """

    sound: bool = False
    last: int = 0
    before: str = ""
    since: str = ""
    hash: str = ""
    claimed: str = ""
    time: str = ""
    leaves: int = 0
    nodes: tuple[str, ...] = ()

    def extend(self, walk: ChainVerification, last: int) -> bool:
        """Take a walk to the window's end, when the window is sound and begins with what the walk ends with."""
        fits = (self.last, self.before, self.since) == (last, walk.last_hash, walk.time)
        if not (self.sound and fits and walk.fault is None):
            return False
        walk.sequence, walk.last_hash, walk.claimed, walk.time = last, self.hash, self.claimed, self.time
        left = self.leaves
        for node in self.nodes:
            size = 1 << (left.bit_length() - 1)
            walk.tree.append_subtree(bytes.fromhex(node), size)
            left -= size
        return True


type VerifyWindow = Callable[[WindowRequest], Awaitable[WindowResult]]


class VerifierUnavailableError(Exception):
    """Who walks windows options could not be started, or is gone."""


@runtime_checkable
class ParallelVerifier(Protocol):
    """What a chain store may have besides: somebody who walks windows of its chains on another processor."""

    def open_window_verifier(self) -> AbstractAsyncContextManager[VerifyWindow]:
        """Start one, and end it with the context, whatever it is doing then.

        Questions may be asked before earlier ones are answered; they are taken in order. Entering and asking raise
        :class:`VerifierUnavailableError`.
        """
        ...


async def verify_window(store: ChainStore, asked: WindowRequest) -> WindowResult:
    """Walk a window by the very rules of a whole walk, from the hash that is stored before it.

    Whatever is not plainly sound is told as not sound, without saying why: the walk that comes from the genesis hash
    looks at it again.

    Raises:
        WorkspaceError: the store's UNAVAILABLE.
    """
    page = await store.read(asked.chain, asked.first - 2, limit=1, max_bytes=1)
    if not page.records:
        return WindowResult()
    before, since = page.records[0].hash, content_time(page.records[0])
    if not is_time(since):
        return WindowResult()
    walk = ChainVerification(before, asked.leaves, sequence=asked.first - 1, time=since)
    while walk.sequence < asked.last and walk.fault is None and walk.fork is None:
        here = walk.sequence
        await stream_records(store, asked.chain, walk, asked.last)
        if walk.sequence == here:
            break
    if walk.sequence != asked.last or walk.fault or walk.fork:
        return WindowResult()
    nodes = tuple(node.hex() for node in walk.tree.nodes)
    ends = (walk.last_hash, walk.claimed, walk.time)
    return WindowResult(True, asked.last, before, since, *ends, walk.tree.size, nodes)


PATIENCE_SECONDS: Final = 0.05
"""About what a window takes: whoever needs longer has no processor, or never answers."""

_LOG = logs.get_logger("provenance")


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    """When and how windows are walked options.

    Attributes:
        least: fewest records of such a walk; shorter ones end before anybody is started.
        window: records of a window, a power of two.
        ahead: windows that are asked for at once, so that nobody waits for the next question.
        patience: seconds that a walk waits for a window that it has come to, before it walks over it itself.
    """

    least: int = 100_000
    window: int = WINDOW
    ahead: int = 2
    patience: float = PATIENCE_SECONDS


DEFAULT_PARALLEL: Final = ParallelOptions()


async def verify_up_to(
    store: ChainStore, chain: ChainKey, walk: ChainVerification, last: int, options: ParallelOptions
) -> None:
    """Walk a chain from where a walk stands, up to a sequence, a fault, or the end of what is stored.

    Args:
        store: keeps the chain; one that has it walks windows options.
        chain: which chain.
        walk: from the genesis hash on.
        last: highest sequence to walk over.
        options: when and how windows are walked options.

    Raises:
        WorkspaceError: the store's UNAVAILABLE.
    """
    far_end = WindowScheduler(chain, last, walk.leaves, options)
    somebody = store if isinstance(store, ParallelVerifier) and last - walk.sequence >= options.least else None
    async with nullcontext() if somebody is None else _scheduled(far_end, somebody):
        while walk.sequence < last and walk.fault is None:
            if await far_end.try_extend(walk):
                continue
            before = walk.sequence
            await stream_records(store, chain, walk, last, far_end.window_end(before))
            if walk.sequence == before:
                return


class WindowScheduler:
    """Windows of a chain, handed out from the last one down to where the walk is.

    A window's answer counts only when the walk ends with the very hash that the window begins from: then the walk would
    have come to the same end by itself. All else is walked again, so that faults are found in order and by one rule.

    Args:
        chain: which chain.
        last: highest sequence.
        leaves: as of the walk.
        options: how.
    """

    def __init__(self, chain: ChainKey, last: int, leaves: int, options: ParallelOptions) -> None:
        self._chain = chain
        self._last = last
        self._leaves = leaves
        self._options = options
        self._front = 0
        self._next = (last - 1) // options.window
        self._reserved: deque[tuple[int, asyncio.Future[WindowResult]]] = deque()
        self._answers: dict[int, asyncio.Future[WindowResult]] = {}

    async def run(self, store: ParallelVerifier) -> None:
        """Have windows walked until the walk has come to them, or nobody is there to walk them."""
        for _ in range(self._options.ahead):
            self._reserve()
        try:
            async with store.open_window_verifier() as ask, asyncio.TaskGroup() as group:
                for _ in range(self._options.ahead):
                    group.create_task(self._hand_out(ask))
        except Exception as error:  # noqa: BLE001  whatever it is, the walk goes on alone
            _LOG.info("a chain is verified by one process alone", extra=logs.fields(cause=repr(error)))
            self._next = 0
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_result(WindowResult())

    async def try_extend(self, walk: ChainVerification) -> bool:
        """Take the walk over the window that begins where it stands, when that was walked options and fits."""
        number, within = divmod(walk.sequence, self._options.window)
        self._front = max(self._front, number)
        answer = None if within else self._answers.get(number)
        if answer is None:
            return False
        await asyncio.wait((answer,), timeout=self._options.patience)
        # From now on nobody asks for it again.
        del self._answers[number]
        return answer.done() and answer.result().extend(walk, self._end(number))

    def window_end(self, sequence: int) -> int:
        """Return the last sequence of the window that follows a sequence."""
        return self._end(sequence // self._options.window)

    def _end(self, number: int) -> int:
        return min(self._last, (number + 1) * self._options.window)

    def _reserve(self) -> None:
        """Set the next window aside, unless the walk has come to it."""
        if self._next > self._front:
            answer = self._answers[self._next] = asyncio.get_running_loop().create_future()
            self._reserved.append((self._next, answer))
            self._next -= 1

    async def _hand_out(self, ask: VerifyWindow) -> None:
        while self._reserved:
            number, answer = self._reserved.popleft()
            first = number * self._options.window + 1
            answer.set_result(await ask(WindowRequest(self._chain, first, self._end(number), self._leaves)))
            self._reserve()


@asynccontextmanager
async def _scheduled(far_end: WindowScheduler, store: ParallelVerifier) -> AsyncIterator[None]:
    """Have windows walked options while the context lasts."""
    work = asyncio.create_task(far_end.run(store))
    # The first windows are set aside before the walk begins.
    await asyncio.sleep(0)
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait((work,))
