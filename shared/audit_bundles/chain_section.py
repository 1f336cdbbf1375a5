"""Files of one chain in an audit bundle: its records, its signed checkpoint, its proofs and, on request, receipts.

A receipt is a file that proves that the chain contains a record (RFC 9942).
"""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from shared.audit_bundles.bundle_file import BundleFile
from shared.downloads.models import BundledChain, BundleRequest
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.hash_rule import LAST_SEQUENCE, compute_record_hash, format_record_id
from shared.provenance.inclusion_proofs import InclusionProofs
from shared.provenance.merkle import is_included
from shared.provenance.merkle_proofs import MerkleInclusionProof
from shared.provenance.notes import NoteError
from shared.provenance.overview_ports import ChainOverview
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore, Filters, OrphanRecords, Target
from shared.provenance.queries import build_query_result, iterate_record_pages
from shared.provenance.records import record_to_json
from shared.provenance.signed_roots import SignedRoot, SignedRoots
from shared.provenance.verifier import ChainVerdict, ChainVerifier
from shared.runtime import Runtime

RECEIPTS_PER_PART: Final = 100
"""Number of receipts that are written before the job is checked again, because the job can be cancelled."""
_LOG = logs.get_logger("bundles")


class ChainReceipts:
    """Writer of the receipts of one chain in a bundle: one receipt for each record of the chain in the bundle.

    Args:
        roots: loads the signatures over the Merkle roots.
        chain: chain of the records.
        open_proofs: takes a number n of records; returns the creator of inclusion proofs for the Merkle tree of the
            chain's first n records.
        check_cancellation: raises an error if the job was cancelled or the disk is full; called between steps.
        runtime: clock and threads.
    """

    def __init__(
        self,
        roots: SignedRoots,
        chain: ChainKey,
        open_proofs: Callable[[int], InclusionProofs],
        check_cancellation: Callable[[], Awaitable[None]],
        runtime: Runtime,
    ) -> None:
        self._roots = roots
        self._chain = chain
        self._open_inclusion_proofs = open_proofs
        self._check = check_cancellation
        self._runtime = runtime

    async def write_receipts(
        self, file: BundleFile, folder: str, record_sequences: Sequence[int], tree_size: int
    ) -> None:
        """Write one receipt file for each record.

        Write none if the stored signature over the Merkle root is not trusted, or the stored hashes do not give the
        signed root.

        Args:
            file: zip file of the bundle.
            folder: folder of the receipts in the bundle, with a slash at its end.
            record_sequences: sequence numbers of the records, ascending.
            tree_size: number of records that the chain's newest checkpoint covers; it covers all these records.
        """
        root = await self._load_root_if_trusted(tree_size)
        if root is None or not await self._has_proofs_matching_root(record_sequences, root):
            _LOG.warning("a chain of a bundle gets no receipts", extra=logs.fields(target=self._chain.target))
            return
        proofs = self._open_inclusion_proofs(tree_size)
        for number, sequence in enumerate(record_sequences):
            await self._check_cancellation_at_start_of_part(number)
            proof = await proofs.prove(sequence)
            content = root.signature.encode_inclusion_receipt(tree_size, proof.leaf_index, proof.hashes)
            await file.write_entry(f"{folder}{format_record_id(sequence)}.cbor", content)

    async def _load_root_if_trusted(self, tree_size: int) -> SignedRoot | None:
        try:
            return await self._roots.load(self._chain, tree_size)
        except WorkspaceError as error:
            if error.kind is not Kind.CONFLICT:
                raise
            return None

    async def _has_proofs_matching_root(self, record_sequences: Sequence[int], root: SignedRoot) -> bool:
        checkpoint = root.checkpoint
        proofs = self._open_inclusion_proofs(checkpoint.size)
        if not await proofs.can_prove(record_sequences):
            return False
        for number, sequence in enumerate(record_sequences):
            await self._check_cancellation_at_start_of_part(number)
            proof = await proofs.prove(sequence)
            leaf = proofs.get_record_hash(sequence)
            if not is_included(leaf, proof.leaf_index, checkpoint.size, proof.hashes, checkpoint.root):
                return False
        return True

    async def _check_cancellation_at_start_of_part(self, record_index: int) -> None:
        """Check for cancellation of the job, and let other tasks run, if a record is the first of its part.

        A part has :data:`RECEIPTS_PER_PART` records; ``record_index`` is the index of the record, from 0.
        """
        if record_index % RECEIPTS_PER_PART == 0:
            await self._check()
            await self._runtime.sleep(0)


STEP_RECORDS: Final = 131_072
"""Number of records that are verified before the job is checked again, because the job can be cancelled."""
PROOFS_PER_PART: Final = 100
_EMPTY_CHAIN: Final = ChainVerdict(chain_valid=True, empty=True, fork_detected=False, reason="nothing to check")
"""Result of the verification of a chain without records."""


@dataclass(frozen=True, slots=True)
class ChainSources:
    """Stores and services with which the chains of an audit bundle are read, signed and verified.

    Attributes:
        store: store of the chains.
        checkpoints: creates and reads signed checkpoints.
        verifier: verifies chains.
        roots: loads the signatures over the Merkle roots, for receipts.
        overview: results of the last verifications of the chains.
        runtime: clock, randomness and threads.
    """

    store: ChainStore
    checkpoints: Checkpoints
    verifier: ChainVerifier
    roots: SignedRoots
    overview: ChainOverview
    runtime: Runtime


@dataclass(frozen=True, slots=True)
class _SignedState:
    """State of a chain that a bundle contains: its size, and its newest checkpoint.

    Attributes:
        size: number of records in the chain when the chain was signed for the bundle.
        note: text of the newest signed checkpoint; None if the chain has none.
        tree_size: number of records that the checkpoint covers; 0 if there is no trusted checkpoint, or if the stored
            hashes of the chain do not give its root.
        root: Merkle root of these records that the checkpoint signs.
    """

    size: int
    note: bytes | None
    tree_size: int
    root: bytes = b""


class ChainSection:
    """Writer of the files of one chain into a bundle.

    Args:
        sources: stores and services with which the chain is read, signed and verified.
        chain: key of the chain; a chain that was never written to has no records.
        filters: conditions on the records that the bundle contains.
        number: number of the chain in the bundle, from 1.
        check_cancellation: raises an error if the job was cancelled or the disk is full; called between steps.
        with_receipts: True if the bundle contains a receipt of each record.
    """

    def __init__(
        self,
        sources: ChainSources,
        chain: ChainKey,
        filters: Filters,
        number: int,
        check_cancellation: Callable[[], Awaitable[None]],
        *,
        with_receipts: bool = False,
    ) -> None:
        self._sources = sources
        self._chain = chain
        self._filters = filters
        self._number = number
        self._check = check_cancellation
        self._with_receipts = with_receipts
        self._sequences: list[int] = []
        self._last_sequence = 0
        self._is_damaged = False
        self._genesis_of_broken_chain = ""

    @property
    def is_broken(self) -> bool:
        """Whether the verification of the chain found a fault; False if the chain was not verified."""
        return bool(self._genesis_of_broken_chain)

    async def write_files_and_build_manifest_entry(self, file: BundleFile) -> dict[str, Any]:
        """Write the chain's files into a bundle, and return the chain's entry for the file ``manifest.json``.

        Raises:
            JobEndedError: the job was cancelled.
            WorkspaceError: UNAVAILABLE if a store does not respond.
        """
        state = await self._sign_chain_and_get_state()
        verdict = None if _has_conditions(self._filters) else await self._verify_chain(state)
        if _is_broken(verdict):
            # The signed size and the head item of a broken chain can be lower than the number of its records.
            state = replace(state, size=LAST_SEQUENCE, tree_size=0)
        name = f"chains/{self._number}.json"
        await file.write_entry_in_parts(name, self._stream_records_as_json(state))
        self._last_sequence = state.size
        if _is_broken(verdict):
            self._last_sequence = self._sequences[-1] if self._sequences else 0
        complete = verdict is not None or len(self._sequences) == state.size
        if complete and verdict is None:
            verdict = await self._verify_chain(state)
            # The records of a broken chain can outnumber its signed size.
            complete = not _is_broken(verdict)
        state = await self._discard_tree_if_roots_differ(state)
        if self._with_receipts and state.tree_size and await self._is_chain_valid(verdict):
            await self._write_receipts(file, state.tree_size)
        proof = (
            None
            if _is_broken(verdict)
            else await self._write_inclusion_proofs_and_return_file_name(file, state, complete=complete)
        )
        return {
            "target": str(self._chain.target),
            "scopeKey": self._chain.scope_key or None,
            "file": name,
            "records": len(self._sequences),
            "complete": complete,
            "checkpoint": await self._write_checkpoint_and_return_file_name(file, state),
            "proof": proof,
            "verdict": verdict.to_reply_json(self._chain) if complete and verdict is not None else None,
        }

    def build_filters_of_written_records(self) -> Filters:
        """Return the filters that select the written records of the chain, and no record appended later."""
        return replace(self._filters, to_sequence=self._last_sequence)

    async def _discard_tree_if_roots_differ(self, state: _SignedState) -> _SignedState:
        """Compare the chain's Merkle tree with the signed root of the checkpoint, and repair the stored subtree roots.

        Return ``state`` if the tree gives the signed root. Otherwise, return a copy whose ``tree_size`` is 0, so that
        the bundle contains no proofs: they would not match the signed root.
        """
        trees = self._sources.checkpoints.trees
        if not state.tree_size or await trees.try_repair_roots(self._chain, state.tree_size, state.root):
            return state
        cause = "the stored hashes do not give the signed root"
        _LOG.warning("a chain of a bundle gets no proofs", extra=logs.fields(target=self._chain.target, cause=cause))
        return replace(state, tree_size=0)

    async def _sign_chain_and_get_state(self) -> _SignedState:
        """Sign a checkpoint of the chain in its current state, so that the checkpoint covers all records of the bundle.

        A broken chain is not signed: the bundle then contains all its records and its last checkpoint. If the chain is
        empty, the bundle contains no records and no checkpoint of the chain.
        """
        checkpoints, chain = self._sources.checkpoints, self._chain
        before = (await self._sources.store.read_tip(chain)).sequence
        reason = await self._create_checkpoint_or_describe_refusal()
        newest = None
        try:
            # `verifier-key.txt` contains only the current key, which must verify the note.
            current = await checkpoints.load_newest_verified(chain, is_current_signature_required=True)
        except NoteError as error:
            reason = reason or str(error)
        except WorkspaceError as error:
            if error.kind not in {Kind.CONFLICT, Kind.NOT_FOUND}:
                raise
            if not before and not reason and error.kind is Kind.NOT_FOUND:
                # A first record that was written meanwhile has no checkpoint, so the bundle does not contain it.
                return _SignedState(0, None, 0)
            reason = reason or error.detail
        else:
            newest = current.stored
            # The checkpoint can be valid although its signature for receipts is not.
            if not reason or current.checkpoint.size >= before:
                checkpoint = current.checkpoint
                return _SignedState(checkpoint.size, newest.note, checkpoint.size, checkpoint.root)
        tip = await self._sources.store.read_tip(chain)
        # A stored note has no added signature, so it is read only if it could not be verified.
        newest = newest or await checkpoints.find_newest(chain)
        if tip.sequence:
            _LOG.warning("a chain of a bundle was not signed", extra=logs.fields(target=chain.target, cause=reason))
        return _SignedState(tip.sequence, None if newest is None else newest.note, 0)

    async def _create_checkpoint_or_describe_refusal(self) -> str | None:
        """Create a checkpoint if the chain has grown; return the reason if it is refused, else None."""
        try:
            await self._sources.checkpoints.create_if_grown(self._chain)
        except NoteError as error:
            return str(error)
        except WorkspaceError as error:
            if error.kind is not Kind.CONFLICT:
                raise
            return error.detail
        return None

    async def _stream_records_as_json(self, state: _SignedState) -> AsyncIterator[bytes]:
        """Yield the parts of a JSON array of the matching records, oldest first; remember their sequence numbers."""
        yield b"["
        window = Filters(
            equal=self._filters.equal, start=self._filters.start, end=self._filters.end, to_sequence=state.size
        )
        separator = b""
        async for page in self._iterate_pages(window):
            await self._check()
            if not page:
                continue
            result = await build_query_result(page, len(page), has_more=False, runtime=self._sources.runtime)
            self._sequences += [record.sequence for record in page]
            self._is_damaged |= self._with_receipts and await self._sources.runtime.run_in_thread(
                _has_damaged_record, page
            )
            yield separator + b",".join(map(record_to_json, result.records))
            separator = b","
        yield b"]"

    async def _iterate_pages(self, window: Filters) -> AsyncIterator[Sequence[ChainRecord]]:
        """Yield pages of the chain's records that match ``window``, oldest first.

        If the chain is broken and no record matches, its head item was possibly deleted. Then yield the chain's
        orphans: stored records that no head item includes.
        """
        store, has_records = self._sources.store, False
        async for page, _, _ in iterate_record_pages(store, self._chain, window, newest_first=False):
            has_records = has_records or bool(page)
            yield page
        if self._genesis_of_broken_chain and not has_records and isinstance(store, OrphanRecords):
            async for orphans in store.iterate_orphan_pages(self._genesis_of_broken_chain):
                yield orphans

    async def _verify_chain(self, state: _SignedState) -> ChainVerdict:
        verifier = self._sources.verifier
        run = await verifier.start(self._chain)
        while not await verifier.verify_next_records_and_check_end(run, STEP_RECORDS):
            await self._check()
        verdict = await verifier.finish(run)
        await verifier.store_result(run, verdict)
        self._genesis_of_broken_chain = run.verification.genesis if _is_broken(verdict) else ""
        # The verification also finds a first record that was written meanwhile; the bundle does not contain it.
        return verdict if state.size or not verdict.chain_valid else _EMPTY_CHAIN

    async def _is_chain_valid(self, verdict: ChainVerdict | None) -> bool:
        """Return whether the chain is valid according to ``verdict``.

        If ``verdict`` is None, the chain counts as valid if no record in the bundle is damaged and the last complete
        verification of the chain found no fault.
        """
        if verdict is not None:
            return verdict.chain_valid
        if self._is_damaged:
            return False
        last = await self._sources.overview.find_verdict(self._chain)
        return last is None or last.is_valid

    async def _write_receipts(self, file: BundleFile, tree_size: int) -> None:
        sources = self._sources
        receipts = ChainReceipts(sources.roots, self._chain, self._open_inclusion_proofs, self._check, sources.runtime)
        await receipts.write_receipts(file, f"receipts/{self._number}/", self._sequences, tree_size)

    def _open_inclusion_proofs(self, tree_size: int) -> InclusionProofs:
        return InclusionProofs(self._sources.store, self._sources.checkpoints.trees, self._chain, tree_size)

    async def _write_checkpoint_and_return_file_name(self, file: BundleFile, state: _SignedState) -> str | None:
        if state.note is None:
            return None
        name = f"checkpoints/{self._number}.txt"
        await file.write_entry(name, state.note)
        return name

    async def _write_inclusion_proofs_and_return_file_name(
        self, file: BundleFile, state: _SignedState, *, complete: bool
    ) -> str | None:
        """Write a file with inclusion proofs of the chain; return the name of the file.

        If the bundle is ``complete`` (has all records of the chain), the file contains the proof of the last record;
        else it contains the proof of each record in the bundle. Return None and write no file if there is no trusted
        checkpoint, or if a record or a valid hash is missing.
        """
        if not state.tree_size:
            return None
        name = f"proofs/{self._number}.json"
        proofs = self._open_inclusion_proofs(state.tree_size)
        if not await proofs.can_prove([state.tree_size] if complete else self._sequences):
            cause = "a record or a valid hash is missing"
            _LOG.warning(
                "a chain of a bundle gets no proofs", extra=logs.fields(target=self._chain.target, cause=cause)
            )
            return None
        if complete:
            await file.write_entry(name, orjson.dumps(_inclusion_proof_to_json(await proofs.prove(state.tree_size))))
        else:
            await file.write_entry_in_parts(name, self._stream_inclusion_proofs_as_json(proofs))
        return name

    async def _stream_inclusion_proofs_as_json(self, proofs: InclusionProofs) -> AsyncIterator[bytes]:
        yield b"["
        for start in range(0, len(self._sequences), PROOFS_PER_PART):
            await self._check()
            found = [await proofs.prove(one) for one in self._sequences[start : start + PROOFS_PER_PART]]
            yield (b"," if start else b"") + b",".join(orjson.dumps(_inclusion_proof_to_json(one)) for one in found)
        yield b"]"


def to_chain_key(bundled: BundledChain) -> ChainKey:
    """Return the key of a chain that a bundle request lists."""
    return ChainKey(Target(bundled.target), bundled.scope_key)


def build_filters(bundle: BundleRequest) -> Filters:
    """Return the filters that select the records of a bundle."""
    equal = {"EntityID": bundle.entity_id} if bundle.entity_id else {}
    return Filters(equal=equal, start=bundle.start_date, end=bundle.end_date)


def _has_damaged_record(records: Sequence[ChainRecord]) -> bool:
    return any(compute_record_hash(record.canonical) != record.hash for record in records)


def _is_broken(verdict: ChainVerdict | None) -> bool:
    return verdict is not None and not verdict.chain_valid


def _has_conditions(filters: Filters) -> bool:
    return bool(filters.equal or filters.start or filters.end)


def _inclusion_proof_to_json(proof: MerkleInclusionProof) -> dict[str, Any]:
    hashes = [base64.b64encode(one).decode() for one in proof.hashes]
    return {"leafIndex": proof.leaf_index, "size": proof.size, "hashes": hashes}
