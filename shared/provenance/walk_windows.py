"""Windows of a chain that are walked apart from the records before them, and what they lead to."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from shared.provenance.ports import ChainKey, ChainStore
from shared.provenance.walk import Walk
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
        hash: ``Hash`` of the last record.
        claimed: its PreviousHash.
        leaves: how many leaves the window has for the tree.
        nodes: roots of the complete subtrees of these leaves, the largest first, as hex.
    """

    sound: bool = False
    last: int = 0
    before: str = ""
    hash: str = ""
    claimed: str = ""
    leaves: int = 0
    nodes: tuple[str, ...] = ()

    def carries(self, walk: Walk, last: int) -> bool:
        """Take a walk to the window's end, when the window is sound and begins with what the walk ends with."""
        if not (self.sound and self.last == last and walk.fault is None and self.before == walk.last_hash):
            return False
        walk.sequence, walk.last_hash, walk.claimed = last, self.hash, self.claimed
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
    before = await store.hashes(asked.chain, asked.first - 2, limit=1)
    if not before:
        return Answer()
    walk = Walk(before[0], asked.leaves, sequence=asked.first - 1)
    while walk.sequence < asked.last and walk.fault is None and walk.fork is None:
        here = walk.sequence
        await walk_on(store, asked.chain, walk, asked.last)
        if walk.sequence == here:
            break
    if walk.sequence != asked.last or walk.fault or walk.fork:
        return Answer()
    tree = walk.tree
    return Answer(
        True, asked.last, before[0], walk.last_hash, walk.claimed, tree.size, tuple(node.hex() for node in tree.nodes)
    )
