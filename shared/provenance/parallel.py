"""Verification of stored chains, optionally on two processors.

The verification reads a chain in windows: ranges of consecutive records. It starts at the genesis hash. For a long
chain, another process verifies windows from the end of the chain backwards until both verifications meet.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Final, Protocol, runtime_checkable

from shared.observability import logs
from shared.provenance.chain_verification import ChainVerification, parse_content_time, to_rows
from shared.provenance.hash_rule import is_time
from shared.provenance.ports import ChainKey, ChainStore, Row, RowStreams
from shared.runtime import SYSTEM_RUNTIME, Runtime

WINDOW_RECORDS: Final = 20_000
PAGE_RECORDS: Final = 1_000
PAGE_BYTES: Final = 8_000_000


async def stream_records(
    store: ChainStore,
    chain: ChainKey,
    verification: ChainVerification,
    last: int,
    stop: int | None = None,
    *,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> None:
    """Verify the next records of a chain; do nothing if there are no further records.

    Args:
        store: store of the chain; if it has the port :class:`RowStreams`, its rows are verified without records.
        chain: chain to verify.
        verification: state of the verification, which continues after its last valid record.
        last: highest sequence number to verify.
        stop: sequence number at which this call stops; None to stop after a default number of records.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    before = verification.sequence
    if isinstance(store, RowStreams):
        await store.stream(
            chain, before + 1, min(last, stop or before + WINDOW_RECORDS), _build_restartable_verifier(verification)
        )
        if verification.sequence > before or verification.fault is not None:
            return
    # Also read a page if the window is empty: a gap may be longer than the window.
    page = await store.read(chain, before, limit=min(PAGE_RECORDS, last - before), max_bytes=PAGE_BYTES)
    records = [record for record in page.records if record.sequence <= last]
    await runtime.run_in_thread(verification.verify_rows, to_rows(records))


def _build_restartable_verifier(verification: ChainVerification) -> Callable[[Iterable[Row]], None]:
    """Return a function that verifies rows.

    Each call begins at the same record, so that it can be repeated after a failure.
    """
    start = {field.name: getattr(verification, field.name) for field in fields(verification)}
    tree = deepcopy(verification.tree)

    def verify_from_start(rows: Iterable[Row]) -> None:
        for name, value in (start | {"tree": deepcopy(tree)}).items():
            setattr(verification, name, value)
        verification.verify_rows(rows)

    return verify_from_start


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
        start_hash: stored ``Hash`` of the record before the window, which has not been verified.
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

    def extend_verification(self, verification: ChainVerification, last: int) -> bool:
        """Continue a verification at the window's end, if the window is valid and follows the last verified record.

        Returns:
            True if the verification was advanced.
        """
        fits = (self.last, self.start_hash, self.start_time) == (last, verification.last_hash, verification.time)
        if not (self.is_valid and fits and verification.fault is None):
            return False
        verification.sequence, verification.last_hash, verification.previous_hash, verification.time = (
            last,
            self.hash,
            self.previous_hash,
            self.time,
        )
        verification.add_signed(*self.signed)
        left = self.leaves
        for node in self.nodes:
            size = 1 << (left.bit_length() - 1)
            verification.tree.append_subtree(bytes.fromhex(node), size)
            left -= size
        return True


type VerifyWindow = Callable[[WindowRequest], Awaitable[WindowResult]]


class VerifierUnavailableError(Exception):
    """The parallel verifier could not be started, or has ended."""


@runtime_checkable
class ParallelVerifier(Protocol):
    """Optional port of a chain store: verifies windows (ranges of records) of its chains in another process."""

    def open_window_verifier(self) -> AbstractAsyncContextManager[VerifyWindow]:
        """Return a context manager that runs a process for verifying windows (ranges of records).

        The end of the block ends the process, even while it verifies a window. Several windows may be requested at
        once; they are verified in order.

        Raises:
            VerifierUnavailableError: the process cannot be started; also from a request if the process has ended.
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
    before, since = page.records[0].hash, parse_content_time(page.records[0])
    if not is_time(since):
        return WindowResult()
    verification = ChainVerification(before, request.leaves, sequence=request.first - 1, time=since)
    while verification.sequence < request.last and verification.fault is None and verification.fork is None:
        before_page = verification.sequence
        await stream_records(store, request.chain, verification, request.last, runtime=runtime)
        if verification.sequence == before_page:
            break
    if verification.sequence != request.last or verification.fault or verification.fork:
        return WindowResult()
    nodes = tuple(node.hex() for node in verification.tree.nodes)
    ends = (verification.last_hash, verification.previous_hash, verification.time)
    return WindowResult(True, request.last, before, since, *ends, verification.tree.size, nodes, verification.signed)


RESULT_TIMEOUT_SECONDS: Final = 0.05
"""Timeout in seconds of a window's result; a slower verifier process has no free processor or has stopped."""

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


async def verify_up_to(
    store: ChainStore,
    chain: ChainKey,
    verification: ChainVerification,
    last: int,
    options: ParallelOptions,
    *,
    runtime: Runtime = SYSTEM_RUNTIME,
) -> None:
    """Continue a verification up to a sequence number, a fault, or the last stored record.

    Args:
        store: store of the chain; verifies long chains in parallel if it has the port :class:`ParallelVerifier`.
        chain: chain to verify.
        verification: state of the verification, which began at the genesis hash.
        last: highest sequence number to verify.
        options: options of parallel verification.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    scheduler = WindowScheduler(chain, last, verification.leaves, options)
    parallel_store = (
        store if isinstance(store, ParallelVerifier) and last - verification.sequence >= options.min_records else None
    )
    async with nullcontext() if parallel_store is None else _run_scheduler(scheduler, parallel_store):
        while verification.sequence < last and verification.fault is None:
            if await scheduler.try_extend(verification):
                continue
            before = verification.sequence
            await stream_records(store, chain, verification, last, scheduler.find_window_end(before), runtime=runtime)
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
        """Request the verification of windows (ranges of records) ahead of this process, until the verifier ends."""
        for _ in range(self._options.ahead):
            self._reserve_window()
        try:
            async with store.open_window_verifier() as verify, asyncio.TaskGroup() as group:
                for _ in range(self._options.ahead):
                    group.create_task(self._request_windows(verify))
        except Exception as error:  # noqa: BLE001  any error only ends the parallel part
            _LOG.info("the chain is verified without the parallel verifier", extra=logs.fields(cause=repr(error)))
            self._next = 0
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_result(WindowResult())

    async def try_extend(self, verification: ChainVerification) -> bool:
        """Continue the verification with the parallel verifier's result for the next window, if it arrives in time."""
        number, within = divmod(verification.sequence, self._options.window)
        self._reached = max(self._reached, number)
        answer = None if within else self._answers.get(number)
        if answer is None:
            return False
        await asyncio.wait((answer,), timeout=self._options.result_timeout)
        # The verification continues after this window, with or without its result.
        del self._answers[number]
        return answer.done() and answer.result().extend_verification(verification, self._compute_end(number))

    def find_window_end(self, sequence: int) -> int:
        """Return the last sequence number of the window that contains the record after ``sequence``."""
        return self._compute_end(sequence // self._options.window)

    def _compute_end(self, number: int) -> int:
        return min(self._last, (number + 1) * self._options.window)

    def _reserve_window(self) -> None:
        """Select the next window (range of records) for the verifier.

        Return None if this process has already reached it.
        """
        if self._next > self._reached:
            answer = self._answers[self._next] = asyncio.get_running_loop().create_future()
            self._reserved.append((self._next, answer))
            self._next -= 1

    async def _request_windows(self, verify: VerifyWindow) -> None:
        while self._reserved:
            number, answer = self._reserved.popleft()
            first = number * self._options.window + 1
            answer.set_result(await verify(WindowRequest(self._chain, first, self._compute_end(number), self._leaves)))
            self._reserve_window()


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
