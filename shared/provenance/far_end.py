"""The far end of a long walk: windows from the last one down, walked apart while the walk comes towards them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

from shared import logs
from shared.provenance.ports import ChainKey, ChainStore
from shared.provenance.walk import Walk
from shared.provenance.walk_windows import WINDOW, Answer, Ask, Question, WalksApart
from shared.provenance.walking import walk_on

PATIENCE_SECONDS: Final = 0.05
"""About what a window takes: whoever needs longer has no processor, or never answers."""

_LOG = logs.logger("provenance")


@dataclass(frozen=True, slots=True)
class Apart:
    """When and how windows are walked apart.

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


BOTH_ENDS: Final = Apart()


async def walk_to(store: ChainStore, chain: ChainKey, walk: Walk, last: int, apart: Apart) -> None:
    """Walk a chain from where a walk stands, up to a sequence, a fault, or the end of what is stored.

    Args:
        store: keeps the chain; one that has it walks windows apart.
        chain: which chain.
        walk: from the genesis hash on.
        last: highest sequence to walk over.
        apart: when and how windows are walked apart.

    Raises:
        WorkspaceError: the store's UNAVAILABLE.
    """
    far_end = FarEnd(chain, last, walk.leaves, apart)
    somebody = store if isinstance(store, WalksApart) and last - walk.sequence >= apart.least else None
    async with nullcontext() if somebody is None else _worked_on(far_end, somebody):
        while walk.sequence < last and walk.fault is None:
            if await far_end.carries(walk):
                continue
            before = walk.sequence
            await walk_on(store, chain, walk, last, far_end.stop(before))
            if walk.sequence == before:
                return


class FarEnd:
    """Windows of a chain, handed out from the last one down to where the walk is.

    A window's answer counts only when the walk ends with the very hash that the window begins from: then the walk would
    have come to the same end by itself. All else is walked again, so that faults are found in order and by one rule.

    Args:
        chain: which chain.
        last: highest sequence.
        leaves: as of the walk.
        apart: how.
    """

    def __init__(self, chain: ChainKey, last: int, leaves: int, apart: Apart) -> None:
        self._chain = chain
        self._last = last
        self._leaves = leaves
        self._apart = apart
        self._front = 0
        self._next = (last - 1) // apart.window
        self._reserved: deque[tuple[int, asyncio.Future[Answer]]] = deque()
        self._answers: dict[int, asyncio.Future[Answer]] = {}

    async def work(self, store: WalksApart) -> None:
        """Have windows walked until the walk has come to them, or nobody is there to walk them."""
        for _ in range(self._apart.ahead):
            self._reserve()
        try:
            async with store.walker() as ask, asyncio.TaskGroup() as group:
                for _ in range(self._apart.ahead):
                    group.create_task(self._hand_out(ask))
        except Exception as error:  # noqa: BLE001  whatever it is, the walk goes on alone
            _LOG.info("a chain is verified by one process alone", extra=logs.fields(cause=repr(error)))
            self._next = 0
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_result(Answer())

    async def carries(self, walk: Walk) -> bool:
        """Take the walk over the window that begins where it stands, when that was walked apart and fits."""
        number, within = divmod(walk.sequence, self._apart.window)
        self._front = max(self._front, number)
        answer = None if within else self._answers.get(number)
        if answer is None:
            return False
        await asyncio.wait((answer,), timeout=self._apart.patience)
        # From now on nobody asks for it again.
        del self._answers[number]
        return answer.done() and answer.result().carries(walk, self._end(number))

    def stop(self, sequence: int) -> int:
        """Return the last sequence of the window that follows a sequence."""
        return self._end(sequence // self._apart.window)

    def _end(self, number: int) -> int:
        return min(self._last, (number + 1) * self._apart.window)

    def _reserve(self) -> None:
        """Set the next window aside, unless the walk has come to it."""
        if self._next > self._front:
            answer = self._answers[self._next] = asyncio.get_running_loop().create_future()
            self._reserved.append((self._next, answer))
            self._next -= 1

    async def _hand_out(self, ask: Ask) -> None:
        while self._reserved:
            number, answer = self._reserved.popleft()
            first = number * self._apart.window + 1
            answer.set_result(await ask(Question(self._chain, first, self._end(number), self._leaves)))
            self._reserve()


@asynccontextmanager
async def _worked_on(far_end: FarEnd, store: WalksApart) -> AsyncIterator[None]:
    """Have windows walked apart while the context lasts."""
    work = asyncio.create_task(far_end.work(store))
    # The first windows are set aside before the walk begins.
    await asyncio.sleep(0)
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait((work,))
