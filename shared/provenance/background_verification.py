"""Verification of all audit chains in the background, in runs of limited length.

A run verifies the chains that have grown since their last verification, beginning with the chain whose verification is
oldest. A chain that has checkpoints but is not stored, because its records or its head item were deleted, is verified,
too. A period is the sequence of runs until every due chain is verified. A broken chain is verified in each period,
because it may have been repaired. A verification always begins at the first record, and only complete results are
stored: a stored intermediate state could be forged so that changed records look valid.
"""

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.provenance.checkpoints import Checkpoints, build_checkpoint_name_prefix
from shared.provenance.overview_ports import ChainOverview, ChainSummary
from shared.provenance.ports import ChainKey
from shared.provenance.verifier import ChainVerifier, VerificationRun, store_verification_result
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339

RUN_SECONDS: Final = 600.0
STEP_RECORDS: Final = 131_072
"""Number of records that are verified between two checks of the time limit."""
_PAGE: Final = 1_000
_LOG = get_logger("verification")

type OnBroken = Callable[[ChainKey, str, str], Awaitable[None]]


class BackgroundVerification:
    """Verifies all chains of the workspace and stores the results.

    Args:
        overview: store of the chains' summaries and of the results of their last verifications.
        verifier: verifies single chains.
        checkpoints: lists the chains that have checkpoints, also if the chains are missing in the store.
        on_broken: called for each broken chain, with the chain's key, the verdict's ``broken_at`` and the reason. The
            result is stored after the call; if the process ends before that, the chain is verified and reported again.
        seconds: maximum length of a run in seconds. A run ends after the step in which this length is reached.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        overview: ChainOverview,
        verifier: ChainVerifier,
        checkpoints: Checkpoints,
        *,
        seconds: float = RUN_SECONDS,
        on_broken: OnBroken | None = None,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._overview = overview
        self._verifier = verifier
        self._checkpoints = checkpoints
        self._seconds = seconds
        self._on_broken = on_broken
        self._runtime = runtime
        self._period_start = ""
        self._unfinished: VerificationRun | None = None

    async def run(self) -> bool:
        """Verify the audit chains that are due; return False if the time limit ended the run before all were verified.

        If the result is False, call this method again soon: it then verifies the remaining chains.
        """
        deadline = self._runtime.monotonic() + self._seconds
        self._period_start = self._period_start or format_rfc3339(self._runtime.now())
        due = await self._list_due_chains()
        if self._unfinished is not None:
            due.insert(0, self._unfinished.chain)
        for chain in dict.fromkeys(due):
            if self._runtime.monotonic() >= deadline or not await self._verify_chain_until_deadline(chain, deadline):
                return False
        self._period_start = ""
        return True

    async def _list_due_chains(self) -> list[ChainKey]:
        """Return the chains that must be verified, sorted by the time of their last verification, oldest first."""
        due: list[tuple[str, ChainKey]] = []
        known: set[str] = set()
        after: ChainKey | None = None
        while page := await self._overview.list_chains(None, after, _PAGE):
            after = page[-1].chain
            known.update(build_checkpoint_name_prefix(one.chain) for one in page)
            due += [(one.verdict.verified_at if one.verdict else "", one.chain) for one in page if self._is_due(one)]
        return [*await self._list_due_chains_missing_in_overview(known), *(chain for _, chain in sorted(due))]

    async def _list_due_chains_missing_in_overview(self, known: Collection[str]) -> list[ChainKey]:
        """Return the chains that have checkpoints but were deleted, if they are due for verification.

        Args:
            known: checkpoint name prefixes of the chains that exist.
        """
        try:
            missing = await self._checkpoints.find_checkpointed_chains_except(known)
        except WorkspaceError as error:
            _LOG.warning("missing chains could not be searched: %s", error)
            return []
        summaries = [ChainSummary(chain, 0, "", verdict=await self._overview.find_verdict(chain)) for chain in missing]
        return [summary.chain for summary in summaries if self._is_due(summary)]

    def _is_due(self, summary: ChainSummary) -> bool:
        verdict = summary.verdict
        if verdict is None:
            return True
        # A chain that grows during a period is due in the next one.
        return verdict.verified_at < self._period_start and (verdict.records != summary.records or not verdict.is_valid)

    async def _verify_chain_until_deadline(self, chain: ChainKey, deadline: float) -> bool:
        """Verify a chain and store the result; return False if the time limit is reached before the end of the chain.

        If the verification fails with an error, it is logged and the result is True, so that the other chains are
        verified. The chain is due again in the next run.
        """
        try:
            run, self._unfinished = self._unfinished, None
            if run is None or run.chain != chain:
                run = await self._verifier.start(chain)
            while not await self._verifier.advance(run, STEP_RECORDS):
                if self._runtime.monotonic() >= deadline:
                    self._unfinished = run
                    return False
            await self._finish_verification(run)
        except Exception:  # noqa: BLE001  a failure must not stop the other chains
            count("workspace.chain.verify.failures", target=chain.target.value)
            _LOG.exception(
                "an audit chain could not be verified", extra=fields(target=chain.target, scopeKey=chain.scope_key)
            )
        return True

    async def _finish_verification(self, run: VerificationRun) -> None:
        verdict = await self._verifier.finish(run)
        count("workspace.chain.verified", target=run.chain.target.value, sound=verdict.chain_valid)
        if self._on_broken is not None and not verdict.chain_valid:
            await self._on_broken(run.chain, verdict.broken_at or "", verdict.reason)
        await store_verification_result(self._overview, run, verdict, self._runtime)
