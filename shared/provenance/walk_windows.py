"""Windows of a chain that are walked apart from the records before them, and what they lead to."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from shared.provenance.hash_rule import is_time
from shared.provenance.ports import ChainKey, ChainStore
from shared.provenance.walk import Walk, time_of
from shared.provenance.walking import walk_on

WINDOW: Final = 8_192
"""A power of two, so that a window's tree fits the chain's."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which window to walk.

    Attributes:
        chain: which chain.
        first: lowest sequence, at least 2.
        last: highest sequence, inclusive.
        leaves: as of :class:`Walk`.
    """

    chain: ChainKey
    first: int
    last: int
    leaves: int


@dataclass(frozen=True, slots=True)
class Answer:
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

    def carries(self, walk: Walk, last: int) -> bool:
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


type Ask = Callable[[Question], Awaitable[Answer]]


class NobodyThereError(Exception):
    """Who walks windows apart could not be started, or is gone."""


@runtime_checkable
class WalksApart(Protocol):
    """What a chain store may have besides: somebody who walks windows of its chains on another processor."""

    def walker(self) -> AbstractAsyncContextManager[Ask]:
        """Start one, and end it with the context, whatever it is doing then.

        Questions may be asked before earlier ones are answered; they are taken in order. Entering and asking raise
        :class:`NobodyThereError`.
        """
        ...


async def answered(store: ChainStore, asked: Question) -> Answer:
    """Walk a window by the very rules of a whole walk, from the hash that is stored before it.

    Whatever is not plainly sound is told as not sound, without saying why: the walk that comes from the genesis hash
    looks at it again.

    Raises:
        WorkspaceError: the store's UNAVAILABLE.
    """
    page = await store.read(asked.chain, asked.first - 2, limit=1, max_bytes=1)
    if not page.records:
        return Answer()
    before, since = page.records[0].hash, time_of(page.records[0])
    if not is_time(since):
        return Answer()
    walk = Walk(before, asked.leaves, sequence=asked.first - 1, time=since)
    while walk.sequence < asked.last and walk.fault is None and walk.fork is None:
        here = walk.sequence
        await walk_on(store, asked.chain, walk, asked.last)
        if walk.sequence == here:
            break
    if walk.sequence != asked.last or walk.fault or walk.fork:
        return Answer()
    nodes = tuple(node.hex() for node in walk.tree.nodes)
    ends = (walk.last_hash, walk.claimed, walk.time)
    return Answer(True, asked.last, before, since, *ends, walk.tree.size, nodes)
