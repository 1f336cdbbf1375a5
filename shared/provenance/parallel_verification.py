"""Verification of the records of a chain; two processes verify a long chain in parallel.

The verification reads a chain in windows and starts at the genesis hash. If the chain is long and its store supports
it, another process verifies windows from the end of the chain backwards until both verifications meet. This module is
separate from the verifier of stored chains, which also checks the head item, the checkpoint and the signatures.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

from shared.observability import logs
from shared.provenance.chain_reading import verify_next_records
from shared.provenance.chain_verification import ChainVerification
from shared.provenance.ports import ChainKey, ChainStore
from shared.provenance.window_verification import WINDOW, ParallelVerifier, VerifyWindow, WindowRequest, WindowResult
from shared.runtime import SYSTEM_RUNTIME, Runtime

RESULT_TIMEOUT_SECONDS: Final = 0.05
"""Seconds to wait for the result of a window; a slower verifier process has no free processor or has stopped."""

_LOG = logs.get_logger("provenance")


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    """Options of parallel verification.

    Attributes:
        min_records: minimum number of records for parallel verification; a shorter chain needs no second process.
        window: number of records in a window, a power of two.
        ahead: number of windows that are requested at the same time, so that the verifier never waits for a request.
        result_timeout: seconds to wait for the result of a window; then this process verifies the window itself.
    """

    min_records: int = 100_000
    window: int = WINDOW
    ahead: int = 2
    result_timeout: float = RESULT_TIMEOUT_SECONDS


DEFAULT_PARALLEL: Final = ParallelOptions()


async def verify_records_up_to(
    store: ChainStore,
    chain: ChainKey,
    verification: ChainVerification,
    last_sequence: int,
    options: ParallelOptions,
    *,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> None:
    """Continue a verification up to a sequence number, a fault, or the last stored record, whichever comes first.

    Args:
        store: store of the chain; verifies long chains in parallel if it has the port :class:`ParallelVerifier`.
        chain: chain to verify.
        verification: state of the verification, which began at the genesis hash.
        last_sequence: highest sequence number to verify.
        options: options of parallel verification.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    scheduler = WindowScheduler(chain, last_sequence, verification.leaves, options)
    parallel_store = (
        store
        if isinstance(store, ParallelVerifier) and last_sequence - verification.sequence >= options.min_records
        else None
    )
    async with nullcontext() if parallel_store is None else _run_scheduler(scheduler, parallel_store):
        while verification.sequence < last_sequence and verification.fault is None:
            if await scheduler.try_apply_next_window_result(verification):
                continue
            before = verification.sequence
            await verify_next_records(
                store,
                chain,
                verification,
                last_sequence,
                scheduler.get_window_end_sequence_after(before),
                runtime=runtime,
            )
            if verification.sequence == before:
                return


class WindowScheduler:
    """Assigns windows (ranges of records) of a chain to a parallel verifier, from the last window backwards.

    A result is used only if the verification from the genesis hash arrives at the hash that precedes the window.
    Otherwise the window is verified again, so that faults are found in order.

    Args:
        chain: chain to verify.
        last: highest sequence number to verify.
        leaves: number of the chain's first records to add to the Merkle tree, as in :class:`ChainVerification`.
        options: options of parallel verification.
    """

    def __init__(self, chain: ChainKey, last: int, leaves: int, options: ParallelOptions) -> None:
        self._chain = chain
        self._last = last
        self._leaves = leaves
        self._options = options
        self._reached = 0
        self._next = (last - 1) // options.window
        self._reserved: deque[tuple[int, asyncio.Future[WindowResult]]] = deque()
        self._answers: dict[int, asyncio.Future[WindowResult]] = {}

    async def run(self, store: ParallelVerifier) -> None:
        """Let the parallel verifier verify windows (ranges of records), from the last window backwards.

        This ends at the window that the verification from the genesis hash has reached.
        """
        for _ in range(self._options.ahead):
            self._queue_next_window()
        try:
            async with store.open_window_verifier() as verify, asyncio.TaskGroup() as group:
                for _ in range(self._options.ahead):
                    group.create_task(self._verify_queued_windows(verify))
        except Exception as error:  # noqa: BLE001  any error only ends the parallel part
            _LOG.info("the chain is verified without the parallel verifier", extra=logs.fields(cause=repr(error)))
            self._next = 0
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_result(WindowResult())

    async def try_apply_next_window_result(self, verification: ChainVerification) -> bool:
        """Advance the verification by the next window if the parallel verifier returns a valid result in time.

        Return False if the caller must verify the window itself.
        """
        window_number, within = divmod(verification.sequence, self._options.window)
        self._reached = max(self._reached, window_number)
        answer = None if within else self._answers.get(window_number)
        if answer is None:
            return False
        await asyncio.wait((answer,), timeout=self._options.result_timeout)
        # The verification continues after this window, with or without its result.
        del self._answers[window_number]
        return answer.done() and answer.result().advance_verification_if_valid(
            verification, self._compute_window_end_sequence(window_number)
        )

    def get_window_end_sequence_after(self, sequence: int) -> int:
        """Return the last sequence number of the window that contains the record ``sequence`` + 1."""
        return self._compute_window_end_sequence(sequence // self._options.window)

    def _compute_window_end_sequence(self, window_number: int) -> int:
        return min(self._last, (window_number + 1) * self._options.window)

    def _queue_next_window(self) -> None:
        """Queue the window (range of records) before the last queued one.

        Do nothing if the verification from the genesis hash has reached that window.
        """
        if self._next > self._reached:
            answer = self._answers[self._next] = asyncio.get_running_loop().create_future()
            self._reserved.append((self._next, answer))
            self._next -= 1

    async def _verify_queued_windows(self, verify: VerifyWindow) -> None:
        while self._reserved:
            window_number, answer = self._reserved.popleft()
            first = window_number * self._options.window + 1
            answer.set_result(
                await verify(
                    WindowRequest(self._chain, first, self._compute_window_end_sequence(window_number), self._leaves)
                )
            )
            self._queue_next_window()


@asynccontextmanager
async def _run_scheduler(scheduler: WindowScheduler, store: ParallelVerifier) -> AsyncIterator[None]:
    """Context manager: let a parallel verifier verify windows (ranges of records) while the block runs."""
    work = asyncio.create_task(scheduler.run(store))
    # Reserve the first windows before the verification begins.
    await asyncio.sleep(0)
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait((work,))
