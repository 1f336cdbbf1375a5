"""Tiles: stored lists of the roots of complete subtrees of the Merkle trees of chains."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from shared.provenance.checkpoint_ports import CheckpointStore
from shared.provenance.ports import ChainKey

SUBTREE_LEAVES: Final = 4_096
TILE_ROOTS: Final = 256
TILE_LEAVES: Final = SUBTREE_LEAVES * TILE_ROOTS
"""Number of leaves that one tile covers: about a million. A tile has 8 KiB."""

_DIGEST: Final = hashlib.sha256().digest_size


class Tiles:
    """Stored roots of complete subtrees of a chain's Merkle tree, so that proofs need not read every record's hash.

    A tile is the list of the roots of 256 consecutive subtrees of 4,096 leaves each. The last tile of a chain possibly
    has fewer roots. Lost tiles are computed again.
    Tiles need not be trusted, because the recipient of a proof checks it against a signed root.

    Args:
        notes: store of the checkpoints, in which the tiles are stored, too.
        prefix: returns the prefix of the names of a chain's tiles.
    """

    def __init__(self, notes: CheckpointStore, prefix: Callable[[ChainKey], str]) -> None:
        self._notes = notes
        self._prefix = prefix

    async def load_subtree_roots(self, chain: ChainKey, tile_number: int) -> Sequence[bytes]:
        """Load the roots of one tile (number from 0) of a chain, in order; empty if the tile is missing or damaged."""
        content = await self._notes.find_working_state(self._build_name(chain, tile_number)) or b""
        roots, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(roots).digest() != digest or len(roots) % _DIGEST:
            return []
        return [roots[start : start + _DIGEST] for start in range(0, len(roots), _DIGEST)]

    async def save_subtree_roots(self, chain: ChainKey, tile_number: int, roots: Sequence[bytes]) -> None:
        """Store the roots of one tile of a chain; replace the tile if it exists."""
        content = b"".join(roots)
        await self._notes.save_working_state(
            self._build_name(chain, tile_number), content + hashlib.sha256(content).digest()
        )

    def _build_name(self, chain: ChainKey, tile_number: int) -> str:
        return f"{self._prefix(chain)}roots-{tile_number:06d}"
