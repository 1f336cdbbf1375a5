"""Loading of checkpoints with the signatures over their Merkle roots; both are verified and cached."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.checkpoint_ports import StoredCheckpoint
from shared.provenance.checkpoints import Checkpoints, build_checkpoint_name
from shared.provenance.cose import RootSignature
from shared.provenance.notes import CheckpointContent, NoteError
from shared.provenance.ports import ChainKey
from shared.runtime import SYSTEM_RUNTIME, Runtime

CACHED_ROOTS: Final = 10_000
FRESH_SECONDS: Final = 300.0
"""Seconds for which a verified root is cached. Then it is verified again, because its key may no longer be trusted."""


@dataclass(frozen=True, slots=True)
class SignedRoot:
    """Checkpoint of an audit chain, with the signature over its Merkle root.

    Attributes:
        checkpoint: content of the checkpoint.
        signature: COSE signature over the root.
    """

    checkpoint: CheckpointContent
    signature: RootSignature


class SignedRoots:
    """Loads checkpoints with the signatures over their Merkle roots.

    Args:
        checkpoints: reads signed checkpoints.
        runtime: clock, randomness and threads.
    """

    def __init__(self, checkpoints: Checkpoints, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._checkpoints = checkpoints
        self._runtime = runtime
        self._verified: OrderedDict[str, tuple[float, SignedRoot]] = OrderedDict()

    async def load(self, chain: ChainKey, tree_size: int) -> SignedRoot:
        """Return the checkpoint of a chain's first ``tree_size`` records, with the COSE signature over its Merkle root.

        If there is no such signature yet, it is made and stored now.

        Raises:
            WorkspaceError: NOT_FOUND ``CHECKPOINT_NOT_FOUND`` if no checkpoint has this size; CONFLICT
                ``CHECKPOINT_REFUSED`` if the checkpoint or its signature is not trusted; UNAVAILABLE if a store or the
                key does not respond.
        """
        name = build_checkpoint_name(chain, tree_size)
        cached = self._find_cached_root(name)
        if cached is not None:
            return cached
        stored = await self._require_checkpoint(chain, tree_size)
        try:
            checkpoint = await self._checkpoints.verify_and_parse_checkpoint(chain, stored)
            signature = await self._checkpoints.signatures.load_or_create(name, checkpoint)
        except NoteError as error:
            detail = "The stored checkpoint, or its signature for receipts, is not from this workspace's key."
            raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail) from error
        return self._cache_root(name, SignedRoot(checkpoint, signature))

    async def check_checkpoint_exists(self, chain: ChainKey, tree_size: int) -> None:
        """Check that a chain has a checkpoint of its first ``tree_size`` records, without verifying or signing it.

        Raises:
            WorkspaceError: NOT_FOUND ``CHECKPOINT_NOT_FOUND`` if no checkpoint has this size; UNAVAILABLE if a store
                does not respond.
        """
        if self._find_cached_root(build_checkpoint_name(chain, tree_size)) is None:
            await self._require_checkpoint(chain, tree_size)

    def _find_cached_root(self, checkpoint_name: str) -> SignedRoot | None:
        cached = self._verified.get(checkpoint_name)
        return cached[1] if cached is not None and self._runtime.monotonic() < cached[0] else None

    async def _require_checkpoint(self, chain: ChainKey, tree_size: int) -> StoredCheckpoint:
        stored = await self._checkpoints.find_by_size(chain, tree_size)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "CHECKPOINT_NOT_FOUND", "No checkpoint of the chain has this size.")
        return stored

    def _cache_root(self, checkpoint_name: str, root: SignedRoot) -> SignedRoot:
        self._verified[checkpoint_name] = self._runtime.monotonic() + FRESH_SECONDS, root
        self._verified.move_to_end(checkpoint_name)
        while len(self._verified) > CACHED_ROOTS:
            self._verified.popitem(last=False)
        return root
