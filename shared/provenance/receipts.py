"""Receipts (RFC 9942): COSE files that prove that a chain contains a record, or that it was only extended."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple

from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.observability.logs import fields, get_logger
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.hash_rule import compute_record_hash, format_record_id
from shared.provenance.inclusion_proofs import InclusionProofs
from shared.provenance.merkle import is_consistent, is_included
from shared.provenance.merkle_proofs import MerkleInclusionProof, Proofs
from shared.provenance.overview_ports import ChainOverview, StoredVerdict
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore
from shared.provenance.signed_roots import SignedRoot, SignedRoots
from shared.runtime import SYSTEM_RUNTIME, Runtime

RETRY_SECONDS: Final = 15
"""Seconds until a checkpoint usually covers a new record, with the default schedule."""
RECEIPTS_PER_STEP: Final = 100
"""Number of receipts between two pauses for other tasks."""
_LOG = get_logger("provenance")


class GrowthReceipt(NamedTuple):
    """Receipt that proves that a chain was only extended, and the number of records in its later checkpoint."""

    content: bytes
    tree_size: int


class Receipts:
    """Issuer of receipts. A receipt contains a stored signature, so issuing it needs no signing key.

    Args:
        store: store of the chains.
        checkpoints: reads signed checkpoints.
        proofs: creates Merkle proofs.
        overview: store of the results of the chains' last verifications.
        runtime: clock, randomness and threads.

    Attributes:
        roots: signed roots of the checkpoints.
    """

    def __init__(
        self,
        store: ChainStore,
        checkpoints: Checkpoints,
        proofs: Proofs,
        overview: ChainOverview,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._checkpoints = checkpoints
        self._proofs = proofs
        self._overview = overview
        self._runtime = runtime
        self.roots = SignedRoots(checkpoints, runtime=runtime)

    async def issue_inclusion_receipt(self, chain: ChainKey, sequence: int, tree_size: int | None) -> bytes:
        """Issue a receipt that proves that a checkpoint covers a record.

        Args:
            chain: chain of the record.
            sequence: sequence number of the record.
            tree_size: number of records that the checkpoint covers, at least ``sequence``; None for the newest one.

        Raises:
            WorkspaceError: NOT_FOUND ``RECORD_NOT_FOUND`` if the chain has no such record, ``CHECKPOINT_NOT_FOUND`` if
                no checkpoint has this size, or ``RECEIPT_NOT_READY`` if no checkpoint covers the record yet; CONFLICT
                ``CHAIN_BROKEN`` if records or hashes of the chain were changed, or ``CHECKPOINT_REFUSED`` if the
                checkpoint or its signature is not trusted; UNAVAILABLE if a store does not respond.
        """
        records, verdict, found = await asyncio.gather(
            self._read_records_with_sequence(chain, sequence),
            self._overview.find_verdict(chain),
            self._resolve_checkpoint_size(chain, tree_size),
        )
        if not records:
            detail = f"The chain has no record {format_record_id(sequence)}."
            raise WorkspaceError(Kind.NOT_FOUND, "RECORD_NOT_FOUND", detail)
        # The error for a missing checkpoint comes before the errors for a broken chain, as for a missing record. The
        # checkpoint of a broken chain is not loaded, because that could sign its root.
        if found >= sequence:
            await self.roots.check_checkpoint_exists(chain, found)
        # No checkpoint will ever cover a record of a broken chain, so this error comes before RECEIPT_NOT_READY, which
        # requests a retry.
        _require_valid_chain(verdict)
        record = records[0]
        digest = await self._compute_hash_of_record(record)
        if len(records) > 1 or digest.hex() != record.hash:
            raise _build_broken_chain_error(f"the Hash of {format_record_id(sequence)} does not match its content")
        if found < sequence:
            raise _build_receipt_not_ready_error(sequence)
        root = await self.roots.load(chain, found)
        return await self._repeat_with_reloaded_roots(
            chain, lambda: self._build_inclusion_receipt(chain, sequence, digest, root)
        )

    async def _repeat_with_reloaded_roots[T](self, chain: ChainKey, build: Callable[[], Awaitable[T]]) -> T:
        """Build receipts; if the hashes do not match the signed root, reload the cached subtree roots and repeat.

        The cached roots are wrong if they were computed while a stored hash was damaged that is repaired now. They are
        reloaded at most once a minute for a chain.
        """
        try:
            return await build()
        except WorkspaceError as error:
            if error.code != "CHAIN_BROKEN":
                raise
            # The repetition is also useful without this, because a concurrent call has possibly just reloaded them.
            self._checkpoints.trees.forget_cached_roots_if_due(chain)
            return await build()

    async def _build_inclusion_receipt(
        self, chain: ChainKey, sequence: int, record_hash: bytes, root: SignedRoot
    ) -> bytes:
        """Build the receipt of a record from a verified root that covers the record.

        Args:
            chain: chain of the record.
            sequence: sequence number of the record.
            record_hash: ``Hash`` of the record, as bytes.
            root: signed Merkle root of a checkpoint that covers the record.

        Raises:
            WorkspaceError: CONFLICT ``CHAIN_BROKEN`` if the root of the stored hashes differs from the signed root.
        """
        checkpoint = root.checkpoint
        try:
            proof = await self._proofs.build_inclusion_proof(chain, sequence, checkpoint.size)
        except WorkspaceError as error:
            raise _convert_conflict_to_broken_chain_error(error) from error
        if not is_included(record_hash, proof.leaf_index, proof.size, proof.hashes, checkpoint.root):
            raise _build_broken_chain_error("the Merkle root of the stored hashes differs from the signed root")
        return root.signature.encode_inclusion_receipt(proof.size, proof.leaf_index, proof.hashes)

    async def issue_receipts_by_record_id(self, chain: ChainKey, records: Iterable[ChainRecord]) -> dict[str, bytes]:
        """Issue a receipt for each of the given records that the newest checkpoint covers.

        The result is empty if the chain is broken, has no trusted checkpoint, or its checkpoints cannot be read.

        Args:
            chain: chain of the records.
            records: records as they are stored.

        Returns:
            Receipts by RecordID.
        """
        try:
            verdict, size = await asyncio.gather(
                self._overview.find_verdict(chain), self._resolve_checkpoint_size(chain, None)
            )
            _require_valid_chain(verdict)
            covered = {record.sequence: record for record in records if record.sequence <= size}
            if not covered:
                return {}
            root = await self.roots.load(chain, size)
            return await self._repeat_with_reloaded_roots(
                chain, lambda: self._build_inclusion_receipts_by_record_id(chain, covered, root)
            )
        except WorkspaceError as error:
            _LOG.warning("a page is returned without receipts", extra=fields(target=chain.target, cause=str(error)))
            return {}

    async def _build_inclusion_receipts_by_record_id(
        self, chain: ChainKey, records_by_sequence: Mapping[int, ChainRecord], root: SignedRoot
    ) -> dict[str, bytes]:
        checkpoint, receipts = root.checkpoint, dict[str, bytes]()
        proofs = InclusionProofs(self._store, self._checkpoints.trees, chain, checkpoint.size)
        for number, sequence in enumerate(sorted(records_by_sequence)):
            if number % RECEIPTS_PER_STEP == 0:
                await self._runtime.sleep(0)
            record, proof = (
                records_by_sequence[sequence],
                await _prove_inclusion_or_raise_broken_chain_error(proofs, sequence),
            )
            leaf = await self._compute_hash_of_record(record)
            if leaf.hex() != record.hash or not is_included(
                leaf, proof.leaf_index, checkpoint.size, proof.hashes, checkpoint.root
            ):
                raise _build_broken_chain_error(f"{format_record_id(sequence)} does not match the signed Merkle root")
            receipts[format_record_id(sequence)] = root.signature.encode_inclusion_receipt(
                checkpoint.size, proof.leaf_index, proof.hashes
            )
        return receipts

    async def _compute_hash_of_record(self, record: ChainRecord) -> bytes:
        canonical = record.canonical
        return bytes.fromhex(await self._runtime.run_in_thread_if_large(len(canonical), compute_record_hash, canonical))

    async def issue_growth_receipt(self, chain: ChainKey, old_tree_size: int, tree_size: int | None) -> GrowthReceipt:
        """Issue a receipt that proves that a checkpoint begins with all records of an earlier checkpoint, unchanged.

        Args:
            chain: chain of the checkpoints.
            old_tree_size: number of records that the earlier checkpoint covers.
            tree_size: number of records that the later checkpoint covers; None for the newest checkpoint.

        Raises:
            WorkspaceError: INVALID if ``old_tree_size`` is not less than the later size; NOT_FOUND
                ``CHECKPOINT_NOT_FOUND`` if a checkpoint with one of the sizes is missing; CONFLICT and UNAVAILABLE as
                in :meth:`issue_inclusion_receipt`.
        """
        verdict, found = await asyncio.gather(
            self._overview.find_verdict(chain), self._resolve_checkpoint_size(chain, tree_size)
        )
        if 0 < found <= old_tree_size:
            raise build_invalid_field_error("from", f"must be less than `size`, which is {found}")
        for size in (found, old_tree_size):
            await self.roots.check_checkpoint_exists(chain, size)
        _require_valid_chain(verdict)
        new, older = await self.roots.load(chain, found), await self.roots.load(chain, old_tree_size)
        return await self._repeat_with_reloaded_roots(chain, lambda: self._build_growth_receipt(chain, older, new))

    async def _build_growth_receipt(self, chain: ChainKey, older: SignedRoot, new: SignedRoot) -> GrowthReceipt:
        old, checkpoint = older.checkpoint, new.checkpoint
        try:
            proof = await self._proofs.build_consistency_proof(chain, old.size, checkpoint.size)
        except WorkspaceError as error:
            raise _convert_conflict_to_broken_chain_error(error) from error
        if not is_consistent(old.size, checkpoint.size, old.root, checkpoint.root, proof.hashes):
            raise _build_broken_chain_error("the Merkle roots of the stored hashes differ from the signed roots")
        return GrowthReceipt(new.signature.encode_growth_receipt(proof.old, proof.size, proof.hashes), proof.size)

    async def _resolve_checkpoint_size(self, chain: ChainKey, requested_tree_size: int | None) -> int:
        """Return the requested size, or for None the newest checkpoint's size; 0 if the chain has no checkpoint."""
        return (
            await self._checkpoints.count_covered_records(chain) if requested_tree_size is None else requested_tree_size
        )

    async def _read_records_with_sequence(self, chain: ChainKey, sequence: int) -> list[ChainRecord]:
        """Read the records with one sequence number: one record, or several if the chain was forged."""
        page = await self._store.read(chain, sequence - 1, limit=1, max_bytes=1)
        return [record for record in page.records if record.sequence == sequence]


def _require_valid_chain(verdict: StoredVerdict | None) -> None:
    if verdict is not None and not verdict.is_valid:
        raise _build_broken_chain_error(f"the last verification of the chain found a fault in {verdict.broken_at}")


async def _prove_inclusion_or_raise_broken_chain_error(proofs: InclusionProofs, sequence: int) -> MerkleInclusionProof:
    try:
        return await proofs.prove(sequence)
    except WorkspaceError as error:
        raise _convert_conflict_to_broken_chain_error(error) from error


def _convert_conflict_to_broken_chain_error(error: WorkspaceError) -> WorkspaceError:
    """Convert a CONFLICT error of building a proof to the error ``CHAIN_BROKEN``; return other errors unchanged.

    Building a proof raises CONFLICT if a stored hash is missing or invalid, or differs from a cached subtree root.
    """
    return (
        _build_broken_chain_error("a stored Hash is missing, invalid or changed")
        if error.kind is Kind.CONFLICT
        else error
    )


def _build_broken_chain_error(reason: str) -> WorkspaceError:
    detail = f"The chain is broken, so it gets no receipts: {reason}. Verify the chain."
    return WorkspaceError(Kind.CONFLICT, "CHAIN_BROKEN", detail)


def _build_receipt_not_ready_error(sequence: int) -> WorkspaceError:
    detail = f"No checkpoint covers {format_record_id(sequence)} yet; retry after the stated time."
    return WorkspaceError(Kind.NOT_FOUND, "RECEIPT_NOT_READY", detail, retryAfter=RETRY_SECONDS)
