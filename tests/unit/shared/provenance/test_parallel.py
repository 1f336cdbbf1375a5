"""Long walks from both ends: the verdict is the one of a whole walk, whatever becomes of who helps."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from shared.provenance.chain_verification import ChainVerification
from shared.provenance.parallel import (
    DEFAULT_PARALLEL,
    ParallelOptions,
    VerifierUnavailableError,
    VerifyWindow,
    WindowRequest,
    WindowResult,
    verify_up_to,
    verify_window,
)
from shared.provenance.ports import ChainKey, Row
from shared.provenance.records import draft_record, genesis_hash
from shared.provenance.verifier import ChainVerifier
from tests.unit.shared.provenance.chains import PLATFORM, WORKSPACE, Ledger, WalkedApart, ledger, windows_of, workspace
from tests.unit.shared.provenance.test_tampering import MATRIX

COUNT = 23
type Helper = Callable[[WalkedApart, WindowRequest], Awaitable[WindowResult]]


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Ledger]:
    """A chain of events with a correction in it, and a checkpoint that covers half a window at its end."""
    async with ledger(tmp_path, windows_of(4)) as opened:
        await opened.fill(PLATFORM, COUNT - 5)
        members = {"AmendedBy": "ann", "EntityType": "Batch", "EntityID": "B", "Status": "pending"}
        await opened.events.log.append(PLATFORM, draft_record(members, "AmendedAt"))
        assert await opened.checkpoints.create(PLATFORM)
        await opened.fill(PLATFORM, 4)
        yield opened


async def test_sound_windows_are_not_walked_again(plant: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sound chain all windows but the first are carried over, tree included, and the checkpoint agrees."""
    walked: list[int] = []
    stream = plant.store.stream

    async def counted(chain: ChainKey, first: int, last: int, work: Callable[[Iterable[Row]], None]) -> None:
        walked.append(first)
        await stream(chain, first, last, work)

    verdict = await plant.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.reason) == (True, f"{COUNT} records, all sound")
    assert plant.store.sound == COUNT // 4
    monkeypatch.setattr(plant.store, "stream", counted)
    await plant.verify(PLATFORM)
    # Each window once, by whoever: none but the first belongs to the walk itself.
    assert sorted(walked) == list(range(1, COUNT, 4))


@pytest.mark.parametrize("window", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("leaves", range(0, COUNT + 1, 3))
async def test_a_tree_is_the_same_however_it_is_put_together(plant: Ledger, window: int, leaves: int) -> None:
    """Windows bring the leaves of a checkpoint that ends anywhere."""
    genesis = genesis_hash(WORKSPACE, PLATFORM.target, PLATFORM.scope_key)
    whole, parts = ChainVerification(genesis, leaves), ChainVerification(genesis, leaves)
    await verify_up_to(plant.store, PLATFORM, whole, COUNT, DEFAULT_PARALLEL)
    await verify_up_to(plant.store, PLATFORM, parts, COUNT, windows_of(window))
    assert parts == whole
    assert whole.tree.size == leaves


async def dies(_store: WalkedApart, _question: WindowRequest) -> WindowResult:
    """Be gone."""
    raise VerifierUnavailableError("told to die")


async def breaks(_store: WalkedApart, _question: WindowRequest) -> WindowResult:
    """Answer what is no answer."""
    raise ValueError("told to break")


async def hangs(_store: WalkedApart, _question: WindowRequest) -> WindowResult:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def dies_later(store: WalkedApart, question: WindowRequest) -> WindowResult:
    """Answer about half of the windows."""
    if question.first > COUNT // 2:
        return await verify_window(store, question)
    raise VerifierUnavailableError("told to die")


async def answers_of_another(store: WalkedApart, question: WindowRequest) -> WindowResult:
    """Answer with the window before."""
    first = max(2, question.first - 4)
    return await verify_window(store, WindowRequest(question.chain, first, question.last - 4, question.leaves))


@pytest.mark.parametrize("name", [None, "edited field", "deleted middle", "swapped", "deleted tail"])
@pytest.mark.parametrize("helper", [dies, breaks, hangs, dies_later, answers_of_another])
async def test_the_verdict_needs_no_help(plant: Ledger, helper: Helper, name: str | None) -> None:
    """Whoever walks windows may die, hang or talk nonsense: the walk goes on alone to the same verdict."""
    store = Helped(plant.folder / "provenance.sqlite", helper)
    if name:
        plant.tamper(MATRIX[name][0])
    try:
        apart = ParallelOptions(least=1, window=4, ahead=3, patience=0.05)
        verdict = await ChainVerifier(store, workspace, plant.checkpoints, parallel=apart).verify(PLATFORM)
    finally:
        await store.close()
    assert verdict == await ChainVerifier(plant.store, workspace, plant.checkpoints).verify(PLATFORM)
    assert verdict.chain_valid == (name is None)


class Helped(WalkedApart):
    """The embedded store with a helper of one's own."""

    def __init__(self, path: Path, helper: Helper) -> None:
        super().__init__(path)
        self.helper = helper

    @asynccontextmanager
    async def open_window_verifier(self) -> AsyncIterator[VerifyWindow]:
        """Ask the helper."""

        async def ask(question: WindowRequest) -> WindowResult:
            return await self.helper(self, question)

        yield ask
