"""Receipts in an audit bundle: files that prove that the chain contains a record (RFC 9942).

This module is separate from ``chain_section`` because a bundle contains receipts only on request.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from shared.audit_bundles.bundle_file import BundleFile
from shared.observability import logs
from shared.provenance.hash_rule import format_record_id
from shared.provenance.inclusion_proofs import InclusionProofs
from shared.provenance.merkle import is_included
from shared.provenance.ports import ChainKey
from shared.provenance.signed_roots import SignedRoot, SignedRoots
from shared.runtime import Runtime

RECEIPTS_PER_PART: Final = 100
"""Number of receipts that are written before the job's state is checked again, because it may be cancelled."""
_LOG = logs.get_logger("bundles")


class ChainReceipts:
    """Writer of receipts: one receipt in a bundle for each record of a chain."""

    def __init__(
        self,
        roots: SignedRoots,
        chain: ChainKey,
        open_proofs: Callable[[int], InclusionProofs],
        check: Callable[[], Awaitable[None]],
        runtime: Runtime,
    ) -> None:
        self._roots = roots
        self._chain = chain
        self._open_proofs = open_proofs
        self._check = check
        self._runtime = runtime

    async def write(self, file: BundleFile, folder: str, sequences: Sequence[int], size: int) -> None:
        """Write one receipt file for each record.

        Write no file if the stored hashes do not give the signed Merkle root.

        Args:
            file: zip file of the bundle.
            folder: folder of the receipts in the bundle, with a slash at its end.
            sequences: sequence numbers of the records, ascending.
            size: number of records that the newest checkpoint covers, including these records.
        """
        root = await self._roots.load(self._chain, size)
        if not await self._proofs_match_root(sequences, root):
            _LOG.warning("a chain of a bundle gets no receipts", extra=logs.fields(target=self._chain.target))
            return
        proofs = self._open_proofs(size)
        for number, sequence in enumerate(sequences):
            await self._pause_after_part(number)
            proof = await proofs.prove(sequence)
            content = root.signature.encode_inclusion_receipt(size, proof.leaf_index, proof.hashes)
            await file.write(f"{folder}{format_record_id(sequence)}.cbor", content)

    async def _proofs_match_root(self, sequences: Sequence[int], root: SignedRoot) -> bool:
        checkpoint = root.checkpoint
        proofs = self._open_proofs(checkpoint.size)
        for number, sequence in enumerate(sequences):
            await self._pause_after_part(number)
            proof = await proofs.prove(sequence)
            leaf = proofs.get_leaf_hash(sequence)
            if not is_included(leaf, proof.leaf_index, checkpoint.size, proof.hashes, checkpoint.root):
                return False
        return True

    async def _pause_after_part(self, number: int) -> None:
        """Let other tasks run, and check whether the job was cancelled, if record ``number`` is the last of a part."""
        if number % RECEIPTS_PER_PART == 0:
            await self._check()
            await self._runtime.sleep(0)
