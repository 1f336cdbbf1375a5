"""Tests of parallel verification: a fault of the window verifier does not change the verdict about a chain."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.provenance.chain_verification import ChainVerification
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.parallel_verification import DEFAULT_PARALLEL, ParallelOptions, verify_records_up_to
from shared.provenance.ports import ChainKey, Row
from shared.provenance.records import build_record_draft
from shared.provenance.verifier import ChainVerifier
from shared.provenance.window_verification import (
    VerifierUnavailableError,
    VerifyWindow,
    WindowRequest,
    WindowResult,
    verify_window,
)
from tests.unit.shared.provenance.chains import (
    PLATFORM,
    WORKSPACE,
    Ledger,
    ParallelChainStore,
    build_parallel_options,
    get_workspace_id,
    open_ledger,
)
from tests.unit.shared.provenance.test_verifier import MATRIX

COUNT = 23
type Helper = Callable[[ParallelChainStore, WindowRequest], Awaitable[WindowResult]]


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide a chain with a checkpoint that ends within a window (range of records)."""
    async with open_ledger(tmp_path, build_parallel_options(4)) as opened:
        await opened.fill(PLATFORM, COUNT - 5)
        members = {"AmendedBy": "ann", "EntityType": "Batch", "EntityID": "B", "Status": "pending"}
        await opened.events.log.append(PLATFORM, build_record_draft(members, "AmendedAt"))
        assert await opened.checkpoints.create_if_grown(PLATFORM)
        await opened.fill(PLATFORM, 4)
        yield opened


async def test_valid_windows_are_not_verified_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that the window verifier finds valid is not verified again, except the first window."""
    verified: list[int] = []
    stream = ledger.store.stream_rows

    async def count_window(chain: ChainKey, first: int, last: int, work: Callable[[Iterable[Row]], None]) -> None:
        verified.append(first)
        await stream(chain, first, last, work)

    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.reason) == (True, f"{COUNT} records, all sound")
    assert ledger.store.valid_windows == COUNT // 4
    monkeypatch.setattr(ledger.store, "stream_rows", count_window)
    await ledger.verify(PLATFORM)
    # Each window is verified once, the first one by the verification itself.
    assert sorted(verified) == list(range(1, COUNT, 4))


@pytest.mark.parametrize("window", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("leaves", range(0, COUNT + 1, 3))
async def test_parallel_windows_build_the_same_merkle_tree(ledger: Ledger, window: int, leaves: int) -> None:
    """Verifying windows in parallel computes the same Merkle tree, for any checkpoint size."""
    genesis = compute_genesis_hash(WORKSPACE, PLATFORM.target, PLATFORM.scope_key)
    whole, parts = ChainVerification(genesis, leaves), ChainVerification(genesis, leaves)
    await verify_records_up_to(ledger.store, PLATFORM, whole, COUNT, DEFAULT_PARALLEL)
    await verify_records_up_to(ledger.store, PLATFORM, parts, COUNT, build_parallel_options(window))
    assert parts == whole
    assert whole.tree.size == leaves


async def fail_at_once(_store: ParallelChainStore, _request: WindowRequest) -> WindowResult:
    """Raise an error, like a verification process that ends at once."""
    raise VerifierUnavailableError("injected end")


async def raise_error(_store: ParallelChainStore, _request: WindowRequest) -> WindowResult:
    """Raise an unexpected error."""
    raise ValueError("injected error")


async def wait_forever(_store: ParallelChainStore, _request: WindowRequest) -> WindowResult:
    """Wait forever, like a verification process that hangs."""
    await asyncio.Event().wait()
    raise AssertionError


async def fail_later(store: ParallelChainStore, request: WindowRequest) -> WindowResult:
    """Verify about half of the windows, then raise an error."""
    if request.first > COUNT // 2:
        return await verify_window(store, request)
    raise VerifierUnavailableError("injected end")


async def return_previous_window(store: ParallelChainStore, request: WindowRequest) -> WindowResult:
    """Return the result of the previous window, which is wrong for this window."""
    first = max(2, request.first - 4)
    return await verify_window(store, WindowRequest(request.chain, first, request.last - 4, request.leaves))


@pytest.mark.parametrize("name", [None, "edited field", "deleted middle", "swapped", "deleted tail"])
@pytest.mark.parametrize("helper", [fail_at_once, raise_error, wait_forever, fail_later, return_previous_window])
async def test_the_verdict_does_not_depend_on_the_window_verifier(
    ledger: Ledger, helper: Helper, name: str | None
) -> None:
    """If the window verifier fails, hangs or returns wrong results, the verdict is the same."""
    store = StoreWithHelper(ledger.folder / "provenance.sqlite", helper)
    if name:
        ledger.tamper(MATRIX[name][0])
    try:
        options = ParallelOptions(min_records=1, window=4, ahead=3, result_timeout=0.05)
        verdict = await ChainVerifier(store, get_workspace_id, ledger.checkpoints, parallel=options).verify(PLATFORM)
    finally:
        await store.close()
    assert verdict == await ChainVerifier(ledger.store, get_workspace_id, ledger.checkpoints).verify(PLATFORM)
    assert verdict.chain_valid == (name is None)


class StoreWithHelper(ParallelChainStore):
    """Embedded chain store whose windows (ranges of records) are verified by a function of the test."""

    def __init__(self, path: Path, helper: Helper) -> None:
        super().__init__(path)
        self.helper = helper

    @asynccontextmanager
    async def open_window_verifier(self) -> AsyncIterator[VerifyWindow]:
        """Return a window verifier that calls the function of the test."""

        async def verify_window(request: WindowRequest) -> WindowResult:
            return await self.helper(self, request)

        yield verify_window
