"""Verification of a window, a range of consecutive records of a chain, possibly in another process."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from shared.provenance.chain_reading import verify_records_sequentially
from shared.provenance.chain_verification import ChainVerification, read_content_time
from shared.provenance.hash_rule import is_record_time
from shared.provenance.ports import ChainKey, ChainStore
from shared.runtime import SYSTEM_RUNTIME, Runtime

WINDOW: Final = 8_192
"""Number of records of a window: a power of two, so that a window's tree is a subtree of the chain's tree."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """Request to verify one window (range of records) of a chain.

    Attributes:
        chain: chain to verify.
        first: lowest sequence number of the window, at least 2.
        last: highest sequence number of the window, inclusive.
        leaves: number of the chain's first records to add to the Merkle tree, as in :class:`ChainVerification`.
    """

    chain: ChainKey
    first: int
    last: int
    leaves: int


@dataclass(frozen=True, slots=True)
class WindowResult:
    """Result of verifying a window (range of records); it counts only if the record before the window is valid, too.

    Attributes:
        is_valid: True if every record of the window is stored once and valid; else the other attributes are not set.
        last: last sequence number of the window.
        start_hash: stored ``Hash`` of the record before the window; this record was not verified.
        start_time: time of the record before the window.
        hash: ``Hash`` of the last record of the window.
        previous_hash: PreviousHash of the last record.
        time: time of the last record.
        leaves: number of the window's records that are in the Merkle tree of the verification.
        nodes: roots of the complete subtrees of these records, the largest first, as hex.
        signed: sequence numbers of the window's first and last record with a signature; zeros if there is none.
    """

    is_valid: bool = False
    last: int = 0
    start_hash: str = ""
    start_time: str = ""
    hash: str = ""
    previous_hash: str = ""
    time: str = ""
    leaves: int = 0
    nodes: tuple[str, ...] = ()
    signed: tuple[int, int] = (0, 0)

    def advance_verification_if_valid(self, verification: ChainVerification, window_end: int) -> bool:
        """Advance a verification to the window's end, if the window is valid and follows the last verified record.

        Args:
            verification: state of the verification; this method changes it.
            window_end: sequence number of the record with which the window must end.

        Returns:
            Whether the verification was advanced.
        """
        fits = (self.last, self.start_hash, self.start_time) == (window_end, verification.last_hash, verification.time)
        if not (self.is_valid and fits and verification.fault is None):
            return False
        verification.sequence, verification.last_hash, verification.previous_hash, verification.time = (
            window_end,
            self.hash,
            self.previous_hash,
            self.time,
        )
        verification.extend_range_of_signed_records(*self.signed)
        left = self.leaves
        for node in self.nodes:
            size = 1 << (left.bit_length() - 1)
            verification.tree.append_subtree(bytes.fromhex(node), size)
            left -= size
        return True


type VerifyWindow = Callable[[WindowRequest], Awaitable[WindowResult]]


class VerifierUnavailableError(Exception):
    """Raised if the process of the parallel verifier cannot be started, has ended, or verifies another chain."""


@runtime_checkable
class ParallelVerifier(Protocol):
    """Optional port of a chain store: verifies windows (ranges of records) of its chains in another process.

    Only the embedded store has this port: its files can be read by another process, and the processor limits the speed
    of verification; the network limits the speed of Cosmos DB.
    """

    def open_window_verifier(self) -> AbstractAsyncContextManager[VerifyWindow]:
        """Return a context manager that runs a process for verifying windows (ranges of records).

        The end of the block ends the process, even while it verifies a window. Several windows can be requested at
        once; they are verified in order.

        Raises:
            VerifierUnavailableError: the process cannot be started, or another chain is being verified. A request
                raises this error if the process has ended.
        """
        ...


async def verify_window(store: ChainStore, request: WindowRequest, runtime: Runtime = SYSTEM_RUNTIME) -> WindowResult:
    """Verify a window (range of records); the stored hash of the record before the window is assumed to be valid.

    The result of a faulty window contains no reason. The verification from the first record of the chain then verifies
    the window again and finds the reason.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    page = await store.read(request.chain, request.first - 2, limit=1, max_bytes=1)
    if not page.records:
        return WindowResult()
    before, since = page.records[0].hash, read_content_time(page.records[0])
    if not is_record_time(since):
        return WindowResult()
    verification = ChainVerification(before, request.leaves, sequence=request.first - 1, time=since)
    await verify_records_sequentially(store, request.chain, verification, request.last, runtime=runtime)
    if verification.sequence != request.last or verification.fault or verification.fork:
        return WindowResult()
    nodes = tuple(node.hex() for node in verification.tree.nodes)
    ends = (verification.last_hash, verification.previous_hash, verification.time)
    return WindowResult(True, request.last, before, since, *ends, verification.tree.size, nodes, verification.signed)
