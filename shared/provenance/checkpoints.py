"""Signed checkpoints of audit chains: created when a chain has grown, and verified before use."""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from urllib.parse import unquote

from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.observability.metrics import count
from shared.provenance.append_guards import compute_latest_allowed_record_time
from shared.provenance.chain_trees import ChainTrees
from shared.provenance.checkpoint_ports import CheckpointStore, NoteSigner, StoredCheckpoint
from shared.provenance.hash_rule import RECORD_ID_DIGITS, sequence_from_record_id
from shared.provenance.merkle_tiles import Tiles
from shared.provenance.note_keys import NoteKeys, RootSignatures
from shared.provenance.notes import (
    CheckpointContent,
    NoteError,
    VerifierKey,
    build_checkpoint_origin,
    verify_and_parse_checkpoint,
)
from shared.provenance.overview_ports import ChainOverview
from shared.provenance.ports import ChainKey, ChainStore, Target, Tip
from shared.provenance.records import format_record_count
from shared.provenance.signed_tree import SignedTree, extend_signed_tree
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import LONGEST_SETBACK, format_rfc3339

KNOWN_SIZES: Final = 100_000
LONGEST_WAIT_SWEEPS: Final = 64
CLOCK_SKEW: Final = timedelta(minutes=10)
MAX_FOREIGN_NOTES: Final = 20
"""Maximum number of notes that are read in search of the name of a deleted chain; each needs four requests on Azure."""
_LOG = logs.get_logger("provenance")


@dataclass(frozen=True, slots=True)
class CurrentCheckpoint:
    """Newest checkpoint of a chain.

    Attributes:
        stored: the checkpoint as it is stored; if a retired key signed it, with an added signature of the current key.
        checkpoint: parsed content of the checkpoint.
        last_hash: Hash of the last record that the checkpoint covers.
    """

    stored: StoredCheckpoint
    checkpoint: CheckpointContent
    last_hash: str


def build_checkpoint_name_prefix(chain: ChainKey) -> str:
    """Return the prefix of the names of a chain's checkpoints.

    The prefix contains a hash of the scope, because the scope itself can have any characters and length.
    """
    scope = hashlib.sha256(chain.scope_key.encode()).hexdigest()[:40] if chain.scope_key else "workspace"
    return f"{chain.target}/{scope}/"


def build_checkpoint_name(chain: ChainKey, tree_size: int) -> str:
    """Return the name of the checkpoint that covers the first ``tree_size`` records of a chain."""
    return f"{build_checkpoint_name_prefix(chain)}{tree_size:0{RECORD_ID_DIGITS}d}"


class RetrySchedule:
    """Schedule of retries for chains whose checkpoint failed: after 1, then after 2, 4, ..., at most 64 sweeps.

    A sweep is one run of the job that creates checkpoints.
    """

    def __init__(self) -> None:
        self._sweeps = 0
        self._known: dict[ChainKey, tuple[int, int]] = {}

    def __contains__(self, chain: ChainKey) -> bool:
        return chain in self._known

    def start_sweep_and_list_retries(self) -> list[ChainKey]:
        """Begin the next sweep, and return the chains that must be retried in this sweep."""
        self._sweeps += 1
        return [chain for chain, (_, at) in self._known.items() if at <= self._sweeps]

    def add(self, chain: ChainKey) -> None:
        """Schedule the next retry for a chain whose checkpoint failed."""
        wait = min(2 * self._known[chain][0], LONGEST_WAIT_SWEEPS) if chain in self._known else 1
        self._known[chain] = (wait, self._sweeps + wait)

    def remove(self, chain: ChainKey) -> None:
        """Remove a chain from the schedule, because its checkpoint was created."""
        self._known.pop(chain, None)


class Checkpoints:
    """Service that creates, reads and verifies checkpoints.

    Args:
        store: store of the chains.
        notes: store of the checkpoints.
        signer: key that signs the checkpoints.
        workspace: returns the workspace's id.
        overview: stores the sizes of new checkpoints for the list of all chains; None to store no sizes.
        issuer: address of the service, for the signatures in receipts.
        runtime: clock, randomness and threads.

    Attributes:
        keys: keys of the workspace.
        signatures: signatures over the roots of checkpoints, for receipts.
        trees: Merkle trees of the chains; roots of subtrees are cached in the store of the checkpoints.
    """

    def __init__(
        self,
        store: ChainStore,
        notes: CheckpointStore,
        signer: NoteSigner,
        workspace: Callable[[], Awaitable[str]],
        overview: ChainOverview | None = None,
        *,
        issuer: str = "",
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._notes = notes
        self._overview = overview
        self.keys = NoteKeys(signer, workspace)
        self.signatures = RootSignatures(notes, self.keys, issuer)
        self._workspace = workspace
        self.trees = ChainTrees(store, Tiles(notes, build_checkpoint_name_prefix), runtime=runtime)
        self._sizes: OrderedDict[ChainKey, int] = OrderedDict()
        self._unsaved: dict[ChainKey, int] = {}
        self._swept_from = ""
        self._failures = RetrySchedule()
        self._runtime = runtime

    async def load_verifier_key(self) -> VerifierKey:
        """Return the key that verifies new checkpoints; ``str()`` of the key is the line to publish."""
        return await self.keys.load_current_key()

    async def find_newest(self, chain: ChainKey) -> StoredCheckpoint | None:
        """Return a chain's newest checkpoint without verifying it; None if the chain has no checkpoint."""
        return await self._notes.find_newest(build_checkpoint_name_prefix(chain))

    async def find_checkpointed_chains_except(self, known_prefixes: Collection[str]) -> Sequence[ChainKey]:
        """Return the chains that have checkpoints, except chains whose prefix is in ``known_prefixes``.

        The scope of such a chain is read from the newest checkpoint that names a chain with this prefix. The signature
        is not verified here; the verification of the chain verifies it.

        Args:
            known_prefixes: prefixes of chains, from :func:`build_checkpoint_name_prefix`.

        Raises:
            WorkspaceError: UNAVAILABLE if the store of the checkpoints does not respond.
        """
        found: list[ChainKey] = []
        for target in Target:
            for prefix in await self._notes.list_name_prefixes(target):
                chain = None if prefix in known_prefixes else await self._find_chain_of_prefix(target, prefix)
                if chain is not None:
                    found.append(chain)
        return found

    async def _find_chain_of_prefix(self, target: Target, prefix: str) -> ChainKey | None:
        """Return the chain whose checkpoints have a name prefix; the chain is read from the newest of them.

        A checkpoint whose note names a chain with another prefix is ignored. Return None if there is no checkpoint with
        the prefix, or if the newest :data:`MAX_FOREIGN_NOTES` checkpoints are all ignored.
        """
        newest = stored = await self._notes.find_newest(prefix)
        for _ in range(MAX_FOREIGN_NOTES):
            if stored is None:
                break
            chain = await self._parse_chain_from_note(target, stored.note)
            if chain is not None and build_checkpoint_name_prefix(chain) == prefix:
                return chain
            stored = await self._notes.find_newest(prefix, older_than_name=stored.name)
        if newest is not None:
            count("workspace.chain.verify.failures", target=target.value, cause="error")
            _LOG.error(
                "no note in a folder of checkpoints names the folder's chain", extra=logs.fields(newest=newest.name)
            )
        return None

    async def _parse_chain_from_note(self, target: Target, note: bytes) -> ChainKey | None:
        """Return the chain that the first line (origin) of a checkpoint's signed note names.

        Return None if the note belongs to another workspace or target.
        """
        origin, _, _ = note.decode("utf-8", "replace").partition("\n")
        chain_origin = build_checkpoint_origin(await self._workspace(), target)
        if origin != chain_origin and not origin.startswith(f"{chain_origin}/"):
            return None
        return ChainKey(target, unquote(origin.removeprefix(chain_origin).removeprefix("/")))

    async def count_covered_records(self, chain: ChainKey) -> int:
        """Return the number of records that a chain's newest checkpoint covers; 0 if the chain has no checkpoint.

        The number is read from the checkpoint's name; the signature is not verified.
        """
        stored = await self.find_newest(chain)
        return 0 if stored is None else sequence_from_record_id(stored.name.rpartition("/")[2]) or 0

    async def find_by_size(self, chain: ChainKey, tree_size: int) -> StoredCheckpoint | None:
        """Return the checkpoint of a chain's first ``tree_size`` records without verifying it; None if missing."""
        return await self._notes.find_checkpoint(build_checkpoint_name(chain, tree_size))

    async def verify_and_parse_checkpoint(self, chain: ChainKey, stored: StoredCheckpoint) -> CheckpointContent:
        """Verify the signature of a stored checkpoint and return its content.

        Raises:
            NoteError: no current or retired key of the workspace signed the checkpoint, the checkpoint belongs to
                another chain, or its name states another size. (A copy under a higher name would hide newer
                checkpoints.)
            WorkspaceError: UNAVAILABLE if a key cannot be reached; CONFLICT ``CHECKPOINT_REFUSED`` if it is missing.
        """
        origin = build_checkpoint_origin(await self._workspace(), chain.target, chain.scope_key)
        checkpoint = verify_and_parse_checkpoint(stored.note, await self.keys.require_signer_key(stored.note), origin)
        if stored.name != build_checkpoint_name(chain, checkpoint.size):
            covered = format_record_count(checkpoint.size)
            raise NoteError(f"the checkpoint covers {covered}, but its name states another number")
        return checkpoint

    async def load_newest_verified(
        self, chain: ChainKey, *, is_current_signature_required: bool = False
    ) -> CurrentCheckpoint:
        """Verify the signature of a chain's newest checkpoint and return the checkpoint.

        If a retired key signed the checkpoint, the returned note also has a signature of the current key.

        Args:
            chain: chain of the checkpoint.
            is_current_signature_required: False to return the note without this signature if the current key cannot be
                reached or is replaced during signing.

        Raises:
            WorkspaceError: NOT_FOUND ``CHECKPOINT_NOT_FOUND`` if the chain has no checkpoint; UNAVAILABLE if a store
                or a required key does not respond, or a required key is replaced during signing.
            NoteError: if the stored checkpoint is not trusted.
        """
        stored = await self.find_newest(chain)
        if stored is None:
            raise WorkspaceError(Kind.NOT_FOUND, "CHECKPOINT_NOT_FOUND", "This chain has no checkpoint yet.")
        checkpoint = await self.verify_and_parse_checkpoint(chain, stored)
        last = await self._store.read_hashes(chain, checkpoint.size - 1, limit=1)
        note = await self.keys.add_current_signature(stored.note, is_required=is_current_signature_required)
        return CurrentCheckpoint(replace(stored, note=note), checkpoint, last[0] if last else "")

    async def create_if_grown(self, chain: ChainKey) -> StoredCheckpoint | None:
        """Sign and store a new checkpoint of a chain; return None if the chain has not grown since its last checkpoint.

        First, the new records are verified, and the Merkle tree of the older records is compared with the last
        checkpoint. If a new record is invalid, or the tree differs, no checkpoint is signed.

        Raises:
            WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the chain is broken, differs from its last checkpoint,
                or a record's time is too far ahead of the clock; UNAVAILABLE if a store does not respond.
            NoteError: if the last checkpoint is not trusted.
        """
        created = await self._create_checkpoint_if_grown(chain)
        await self._save_checkpoint_sizes([chain])
        return created

    async def _create_checkpoint_if_grown(self, chain: ChainKey) -> StoredCheckpoint | None:
        tip = await self._store.read_tip(chain)
        stored = await self.find_newest(chain)
        last = await self.verify_and_parse_checkpoint(chain, stored) if stored else None
        if tip.sequence <= (last.size if last else 0):
            if stored and last:
                # An earlier version, or a process that ended in between, stored the checkpoint alone.
                await self.signatures.load_or_create(stored.name, last)
                self._unsaved[chain] = last.size
            self._remember_checkpoint_size(chain, tip.sequence)
            return None
        workspace = await self._workspace()
        before = await self._load_signed_tree(chain, last)
        covered = await extend_signed_tree(
            self._store,
            chain,
            workspace,
            before,
            tip,
            compute_latest_allowed_record_time(self._runtime.now()),
            runtime=self._runtime,
        )
        tree = covered.build_full_tree()
        checkpoint = CheckpointContent(
            build_checkpoint_origin(workspace, chain.target, chain.scope_key), tree.size, tree.compute_root()
        )
        created = await self._sign_and_store(chain, checkpoint)
        await self._notes.save_working_state(f"{build_checkpoint_name_prefix(chain)}tree", covered.to_working_state())
        await self.trees.save_tiles(chain, tree)
        await self.signatures.load_or_create(build_checkpoint_name(chain, tree.size), checkpoint)
        self._remember_checkpoint_size(chain, tree.size)
        self._unsaved[chain] = tree.size
        return created

    async def create_all_and_count_them(self) -> int:
        """Create a checkpoint of each chain that has grown; return the number of new checkpoints.

        If a chain fails, the other chains are still processed, and the failed chain is retried at growing intervals.
        Only chains that have changed since the last call are read. Chains that changed in the 70 minutes before that
        call are listed again, because clocks may be set back.
        """
        started = self._runtime.now()
        grew = [
            chain
            async for chain, tip in self._store.iterate_tips(self._swept_from)
            if self._has_chain_grown(chain, tip)
        ]
        due = [
            *self._failures.start_sweep_and_list_retries(),
            *(chain for chain in grew if chain not in self._failures),
        ]
        created = 0
        for chain in due:
            try:
                created += await self._create_checkpoint_if_grown(chain) is not None
            except Exception:  # noqa: BLE001  a failure must not stop the other chains
                self._failures.add(chain)
                count("workspace.checkpoint.failures", target=chain.target.value)
                extra = logs.fields(target=chain.target, scopeKey=chain.scope_key)
                _LOG.exception("creating a checkpoint failed", extra=extra)
            else:
                self._failures.remove(chain)
        await self._save_checkpoint_sizes([*self._unsaved])
        # The clocks may be set back and forward before the next sweep, so a new record can have an earlier time.
        self._swept_from = format_rfc3339(started - LONGEST_SETBACK - CLOCK_SKEW)
        return created

    async def _load_signed_tree(self, chain: ChainKey, last_checkpoint: CheckpointContent | None) -> SignedTree:
        """Return the Merkle tree of the last checkpoint; return an empty tree if there is no checkpoint (None).

        The stored tree is used if its root matches the checkpoint; otherwise, the tree is built again from records.

        Raises:
            WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the tree of the records does not match either.
        """
        if last_checkpoint is None:
            return SignedTree()
        state = await self._notes.find_working_state(f"{build_checkpoint_name_prefix(chain)}tree")
        covered = SignedTree.from_working_state(state) if state else None
        if covered is None or not _is_tree_of_checkpoint(covered, last_checkpoint):
            covered = await ChainTrees(self._store, runtime=self._runtime).build_signed_tree(
                chain, last_checkpoint.size
            )
        if not _is_tree_of_checkpoint(covered, last_checkpoint):
            detail = (
                "The last checkpoint of the chain was signed for other records than those in the store; "
                "verify the chain."
            )
            raise WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail)
        return covered

    async def _sign_and_store(self, chain: ChainKey, checkpoint: CheckpointContent) -> StoredCheckpoint | None:
        note = await self.keys.sign_note(checkpoint.text)
        name = build_checkpoint_name(chain, checkpoint.size)
        # If another instance has stored its checkpoint of this size first, that checkpoint is returned.
        await self._notes.create_if_missing(name, note)
        return await self._notes.find_checkpoint(name)

    async def _save_checkpoint_sizes(self, chains: Sequence[ChainKey]) -> None:
        """Store the sizes of new checkpoints (numbers of covered records) in the summaries of their chains.

        A size that could not be stored is stored next time, after the sizes of the other chains.
        """
        for chain in chains:
            size = self._unsaved.get(chain)
            if self._overview is None or size is None:
                continue
            try:
                await self._overview.save_checkpoint_sizes({chain: size})
            except Exception as error:  # noqa: BLE001  a damaged summary must not stop the other chains
                self._unsaved[chain] = self._unsaved.pop(chain, size)
                if isinstance(error, WorkspaceError):
                    # The store possibly does not respond, so each of the other chains could wait for a timeout.
                    _LOG.warning("sizes of checkpoints were not stored", extra=logs.fields(cause=str(error)))
                    return
                _LOG.exception("the size of a checkpoint was not stored", extra=logs.fields(target=chain.target))
            else:
                if self._unsaved.get(chain) == size:
                    del self._unsaved[chain]

    def _has_chain_grown(self, chain: ChainKey, tip: Tip) -> bool:
        return tip.sequence > self._sizes.get(chain, 0)

    def _remember_checkpoint_size(self, chain: ChainKey, covered_records: int) -> None:
        self._sizes[chain] = covered_records
        self._sizes.move_to_end(chain)
        while len(self._sizes) > KNOWN_SIZES:
            self._sizes.popitem(last=False)


def _is_tree_of_checkpoint(covered: SignedTree, checkpoint: CheckpointContent) -> bool:
    tree = covered.build_full_tree()
    return (tree.size, tree.compute_root()) == (checkpoint.size, checkpoint.root)
