"""Signed checkpoints: created when a chain has grown, and verified before use."""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.metrics import count
from shared.provenance.chain_trees import ChainTrees, SignedTree, Tiles, extend_signed_tree
from shared.provenance.checkpoint_ports import CheckpointStore, NoteSigner, StoredCheckpoint
from shared.provenance.hash_rule import RECORD_ID_DIGITS
from shared.provenance.head_checks import latest_allowed_time
from shared.provenance.note_keys import NoteKeys
from shared.provenance.notes import (
    CheckpointContent,
    NoteError,
    VerifierKey,
    open_checkpoint,
    origin_of,
)
from shared.provenance.ports import ChainKey, ChainStore, Tip
from shared.timestamps import now, rfc3339

KNOWN_SIZES: Final = 100_000
LONGEST_WAIT_SWEEPS: Final = 64
CLOCK_SKEW: Final = timedelta(minutes=10)
_LOG = logs.get_logger("provenance")


@dataclass(frozen=True, slots=True)
class CurrentCheckpoint:
    """Newest checkpoint of a chain.

    Attributes:
        stored: the signed note. If a retired key signed it, a signature of the current key is added.
        checkpoint: content of the checkpoint.
        last_hash: Hash of the last record that the checkpoint covers.
    """

    stored: StoredCheckpoint
    checkpoint: CheckpointContent
    last_hash: str


def name_prefix(chain: ChainKey) -> str:
    """Return the prefix of the names of a chain's checkpoints. The scope is hashed, because it may be any text."""
    scope = hashlib.sha256(chain.scope_key.encode()).hexdigest()[:40] if chain.scope_key else "workspace"
    return f"{chain.target}/{scope}/"


def checkpoint_name(chain: ChainKey, size: int) -> str:
    """Return the name of the checkpoint that covers the first ``size`` records of a chain."""
    return f"{name_prefix(chain)}{size:0{RECORD_ID_DIGITS}d}"


class RetrySchedule:
    """Chains whose checkpoint failed, and when to retry: in the next sweep, then after 2, 4, 8, ... more sweeps.

    A sweep is one run of the job that creates checkpoints.
    """

    def __init__(self) -> None:
        self._sweeps = 0
        self._known: dict[ChainKey, tuple[int, int]] = {}

    def __contains__(self, chain: ChainKey) -> bool:
        return chain in self._known

    def start_sweep(self) -> list[ChainKey]:
        """Begin the next sweep and return the chains to retry in it."""
        self._sweeps += 1
        return [chain for chain, (_, at) in self._known.items() if at <= self._sweeps]

    def add(self, chain: ChainKey) -> None:
        """Schedule a retry of a chain whose checkpoint failed."""
        wait = min(2 * self._known[chain][0], LONGEST_WAIT_SWEEPS) if chain in self._known else 1
        self._known[chain] = (wait, self._sweeps + wait)

    def remove(self, chain: ChainKey) -> None:
        """Remove a chain whose checkpoint was created."""
        self._known.pop(chain, None)


class Checkpoints:
    """Creates and reads checkpoints.

    Args:
        store: store of the chains.
        notes: store of the checkpoints.
        signer: signs the checkpoints.
        workspace: returns the workspace's id.
        clock: returns the current time.

    Attributes:
        trees: Merkle trees of the chains; roots of subtrees are cached in the store of the checkpoints.
    """

    def __init__(
        self,
        store: ChainStore,
        notes: CheckpointStore,
        signer: NoteSigner,
        workspace: Callable[[], Awaitable[str]],
        *,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._store = store
        self._notes = notes
        self._keys = NoteKeys(signer, workspace)
        self._workspace = workspace
        self._clock = clock
        self.trees = ChainTrees(store, Tiles(notes, name_prefix))
        self._sizes: OrderedDict[ChainKey, int] = OrderedDict()
        self._swept_from = ""
        self._failures = RetrySchedule()

    async def verifier_key(self) -> VerifierKey:
        """Return the key that verifies new checkpoints; ``str()`` of it is the line to publish."""
        return await self._keys.current()

    async def find_newest(self, chain: ChainKey) -> StoredCheckpoint | None:
        """Return a chain's newest checkpoint without verifying it."""
        return await self._notes.find_newest(name_prefix(chain))

    async def open(self, chain: ChainKey, stored: StoredCheckpoint) -> CheckpointContent:
        """Verify a stored checkpoint and return its content.

        Raises:
            NoteError: if no current or retired key of the workspace signed the checkpoint, it belongs to another chain,
                or its name states another size: a copy under a higher name would hide newer checkpoints.
            WorkspaceError: UNAVAILABLE if a key cannot be reached; CONFLICT ``CHECKPOINT_REFUSED`` if it is missing.
        """
        origin = origin_of(await self._workspace(), chain.target, chain.scope_key)
        checkpoint = open_checkpoint(stored.note, await self._keys.find_key(stored.note), origin)
        if stored.name != checkpoint_name(chain, checkpoint.size):
            raise NoteError(f"it covers {checkpoint.size} records but has the name of another size")
        return checkpoint

    async def current(self, chain: ChainKey) -> CurrentCheckpoint:
        """Return the newest checkpoint of a chain after verifying its signature.

        Raises:
            WorkspaceError: NOT_FOUND ``CHECKPOINT_NOT_FOUND`` if the chain has no checkpoint.
            NoteError: if the stored note is not trusted.
        """
        stored = await self.find_newest(chain)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "CHECKPOINT_NOT_FOUND", "This chain has no checkpoint yet.")
        checkpoint = await self.open(chain, stored)
        last = await self._store.hashes(chain, checkpoint.size - 1, limit=1)
        note = await self._keys.cosign(stored.note)
        return CurrentCheckpoint(replace(stored, note=note), checkpoint, last[0] if last else "")

    async def create(self, chain: ChainKey) -> StoredCheckpoint | None:
        """Sign and store a new checkpoint of a chain; return None if the chain has not grown since the last one.

        The new records are verified first, and the tree of the older records is compared with the last checkpoint. A
        chain that is inconsistent with its last checkpoint is never signed.

        Raises:
            WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the chain differs from its last checkpoint or a record's
                time is ahead of the clock; UNAVAILABLE if a store does not respond.
            NoteError: if the last checkpoint is not trusted.
        """
        tip = await self._store.tip(chain)
        stored = await self.find_newest(chain)
        last = await self.open(chain, stored) if stored else None
        if tip.sequence <= (last.size if last else 0):
            self._remember_size(chain, tip.sequence)
            return None
        workspace = await self._workspace()
        before = await self._load_signed_tree(chain, last)
        covered = await extend_signed_tree(
            self._store, chain, workspace, before, tip, latest_allowed_time(self._clock())
        )
        tree = covered.build_full_tree()
        checkpoint = CheckpointContent(origin_of(workspace, chain.target, chain.scope_key), tree.size, tree.root())
        created = await self._sign_and_store(chain, checkpoint)
        await self._notes.save_state(f"{name_prefix(chain)}tree", covered.to_state())
        await self.trees.save_roots(chain, tree.size)
        self._remember_size(chain, tree.size)
        return created

    async def create_all(self) -> int:
        """Create a checkpoint of each chain that has grown; return the number of new checkpoints.

        A failure does not stop the other chains; the failed chain is retried at growing intervals. Only chains that
        changed since the last sweep are read.
        """
        started = self._clock()
        grew = [chain async for chain, tip in self._store.tips(self._swept_from) if self._has_grown(chain, tip)]
        due = [*self._failures.start_sweep(), *(chain for chain in grew if chain not in self._failures)]
        created = 0
        for chain in due:
            try:
                created += await self.create(chain) is not None
            except Exception:  # noqa: BLE001  a failure must not stop the other chains
                self._failures.add(chain)
                count("workspace.checkpoint.failures", target=chain.target.value)
                _LOG.exception("creating a checkpoint failed", extra=logs.fields(target=chain.target))
            else:
                self._failures.remove(chain)
        self._swept_from = rfc3339(started - CLOCK_SKEW)
        return created

    async def _load_signed_tree(self, chain: ChainKey, last: CheckpointContent | None) -> SignedTree:
        """Load the tree of the last checkpoint from the working state, or from the records if its root differs."""
        if last is None:
            return SignedTree()
        state = await self._notes.load_state(f"{name_prefix(chain)}tree")
        covered = SignedTree.from_state(state) if state else None
        if covered is None or not _has_same_root(covered, last):
            covered = await ChainTrees(self._store).build_signed_tree(chain, last.size)
        if not _has_same_root(covered, last):
            detail = "The last checkpoint of the chain was signed for another chain."
            raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail)
        return covered

    async def _sign_and_store(self, chain: ChainKey, checkpoint: CheckpointContent) -> StoredCheckpoint | None:
        note = await self._keys.sign(checkpoint.text)
        name = checkpoint_name(chain, checkpoint.size)
        # If another instance has stored its checkpoint of this size first, that checkpoint is returned.
        await self._notes.create(name, note)
        return await self._notes.get(name)

    def _has_grown(self, chain: ChainKey, tip: Tip) -> bool:
        return tip.sequence > self._sizes.get(chain, 0)

    def _remember_size(self, chain: ChainKey, size: int) -> None:
        self._sizes[chain] = size
        self._sizes.move_to_end(chain)
        while len(self._sizes) > KNOWN_SIZES:
            self._sizes.popitem(last=False)


def _has_same_root(covered: SignedTree, checkpoint: CheckpointContent) -> bool:
    tree = covered.build_full_tree()
    return (tree.size, tree.root()) == (checkpoint.size, checkpoint.root)
