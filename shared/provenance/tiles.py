"""Roots of subtrees kept beside the checkpoints, so that a proof after a start need not read every hash."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from shared.provenance.ports import ChainKey, CheckpointStore

SUBTREE_LEAVES: Final = 4_096
TILE_ROOTS: Final = 256
TILE_LEAVES: Final = SUBTREE_LEAVES * TILE_ROOTS
"""A tile covers about a million leaves in 8 KiB."""

_DIGEST: Final = hashlib.sha256().digest_size


class Tiles:
    """Keeps the roots of a chain's complete subtrees as working state, a tile at a time.

    They can be made anew at any time and are as trustworthy as the stored hashes: whoever gets a proof from them checks
    it against a signed root.

    Args:
        notes: keeps working state.
        prefix: gives what the names of a chain's state start with.
    """

    def __init__(self, notes: CheckpointStore, prefix: Callable[[ChainKey], str]) -> None:
        self._notes = notes
        self._prefix = prefix

    async def roots(self, chain: ChainKey, tile: int) -> Sequence[bytes]:
        """Return the roots that a tile has, in order; none of one that is absent or damaged."""
        content = await self._notes.state(self._name(chain, tile)) or b""
        roots, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(roots).digest() != digest or len(roots) % _DIGEST:
            return []
        return [roots[start : start + _DIGEST] for start in range(0, len(roots), _DIGEST)]

    async def save(self, chain: ChainKey, tile: int, roots: Sequence[bytes]) -> None:
        """Replace a tile."""
        content = b"".join(roots)
        await self._notes.save_state(self._name(chain, tile), content + hashlib.sha256(content).digest())

    def _name(self, chain: ChainKey, tile: int) -> str:
        return f"{self._prefix(chain)}roots-{tile:06d}"
