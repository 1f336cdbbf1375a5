"""Merkle tree whose root a checkpoint signs, and its extension by new records, which are verified first."""

import json
from dataclasses import dataclass, field
from hashlib import sha256

from shared.errors import Kind, WorkspaceError
from shared.provenance.chain_reading import verify_records_sequentially
from shared.provenance.chain_verification import ChainVerification, read_content_time
from shared.provenance.hash_rule import (
    compute_genesis_hash,
    compute_record_hash,
    describe_invalid_time,
    format_record_id,
    is_record_time,
)
from shared.provenance.merkle import CompactRange
from shared.provenance.ports import ChainKey, ChainStore, Tip
from shared.runtime import Runtime


@dataclass(frozen=True, slots=True)
class SignedTree:
    """Merkle tree whose root a checkpoint signs, stored as the tree of all leaves except the last, and the last leaf.

    Attributes:
        before: tree of all leaves except the last one.
        last_hash: ``Hash`` of the last record as hex digits; empty for an empty tree.
    """

    before: CompactRange = field(default_factory=CompactRange)
    last_hash: str = ""

    def build_full_tree(self) -> CompactRange:
        """Build the Merkle tree that the checkpoint signs, including the last leaf."""
        tree = CompactRange(self.before.size, [*self.before.nodes])
        tree.append([bytes.fromhex(self.last_hash)] if self.last_hash else [])
        return tree

    def to_working_state(self) -> bytes:
        """Serialise the tree to bytes, which the checkpoint store stores as working state."""
        nodes = [node.hex() for node in self.before.nodes]
        return json.dumps({"size": self.before.size, "nodes": nodes, "last": self.last_hash}).encode()

    @classmethod
    def from_working_state(cls, state: bytes) -> "SignedTree | None":
        """Parse the bytes of :meth:`to_working_state`; return None for damaged bytes or those of an earlier version.

        A state without the hash of the last record is damaged, too: every checkpoint covers at least one record.
        """
        try:
            members = json.loads(state)
            before = CompactRange(members["size"], [bytes.fromhex(node) for node in members["nodes"]])
            last = bytes.fromhex(members["last"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        is_valid = type(before.size) is int and before.is_valid() and len(last) == sha256().digest_size
        return cls(before, last.hex()) if is_valid else None


async def extend_signed_tree(
    store: ChainStore,
    chain: ChainKey,
    workspace_id: str,
    covered: SignedTree,
    tip: Tip,
    latest_time: str,
    *,
    runtime: Runtime,
) -> SignedTree:
    """Verify the records after those of a signed tree, up to the chain's last record (tip); return the extended tree.

    Args:
        store: store of the chain.
        chain: chain of the tree.
        workspace_id: the workspace's id.
        covered: tree of the last checkpoint, with fewer leaves than the chain has records; the record of its last leaf
            must not have changed.
        tip: number and hash of the chain's last record, which is the last leaf of the extended tree.
        latest_time: latest time that a record may have, in the format of records.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if the chain is broken, differs from its last checkpoint, or has
            a record whose time is too far ahead of the clock.
    """
    tree = covered.build_full_tree()
    verification = ChainVerification(
        compute_genesis_hash(workspace_id, chain.target, chain.scope_key), tip.sequence, sequence=tree.size, tree=tree
    )
    if tree.size:
        verification.last_hash, verification.time = (
            covered.last_hash,
            await _read_last_covered_time(store, chain, covered),
        )
    await verify_records_sequentially(store, chain, verification, tip.sequence - 1, runtime=runtime)
    before = CompactRange(verification.tree.size, [*verification.tree.nodes])
    await verify_records_sequentially(store, chain, verification, tip.sequence, runtime=runtime)
    if (
        verification.fault
        or verification.fork
        or verification.sequence != tip.sequence
        or verification.last_hash != tip.hash
    ):
        fault = verification.fault or verification.fork
        reason = fault.reason if fault else "the records differ from the head item of the chain"
        raise build_checkpoint_refused_error(f"The chain is broken, so its checkpoint was not signed: {reason}.")
    if verification.time > latest_time:
        raise build_checkpoint_refused_error(
            f"The checkpoint was not signed: the time of record {format_record_id(verification.sequence)} is more than "
            "an hour ahead of this host's clock."
        )
    return SignedTree(before, verification.last_hash)


async def _read_last_covered_time(store: ChainStore, chain: ChainKey, covered: SignedTree) -> str:
    """Return the time of the last record that the last checkpoint covers.

    Raises:
        WorkspaceError: CONFLICT ``CHECKPOINT_REFUSED`` if this record was changed or its time is invalid.
    """
    place = covered.before.size + 1
    page = await store.read(chain, place - 1, limit=1, max_bytes=1)
    record = page.records[0] if page.records else None
    if record is None or (record.sequence, record.hash, compute_record_hash(record.canonical)) != (
        place,
        covered.last_hash,
        covered.last_hash,
    ):
        raise build_checkpoint_refused_error(
            f"The chain was changed after its last checkpoint was signed: record {format_record_id(place)} differs."
        )
    time = read_content_time(record)
    if not is_record_time(time):
        raise build_checkpoint_refused_error(
            f"The chain is broken, so its checkpoint was not signed: {describe_invalid_time(format_record_id(place))}."
        )
    return time


def build_checkpoint_refused_error(detail: str) -> WorkspaceError:
    """Build the error for a checkpoint that is not signed, because the chain is broken or differs from the last one."""
    return WorkspaceError(Kind.CONFLICT, "CHECKPOINT_REFUSED", detail)
