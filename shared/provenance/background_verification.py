"""Verification of all audit chains in the background, in runs of limited length.

A run verifies the chains that have grown since their last verification, beginning with the chain whose verification is
oldest. A chain that has checkpoints but is not stored, because its records or its head item were deleted, is verified,
too. A period begins each time that the schedule of the verification is due, so all instances of the service know its
start. A broken chain is verified in each period, because it may have been repaired. A chain whose verification failed
because a store did not respond is tried again after all other chains, so that a partial outage does not delay these.
After another error, it is tried again in the next period, because the error would probably occur again. A verification
always begins at the first record, and only complete results are stored: a stored intermediate state could be forged so
that changed records look valid.
"""

import itertools
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import Final, TypeGuard

from shared.errors import Kind, WorkspaceError, is_permanent
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.provenance.checkpoints import Checkpoints, build_checkpoint_name_prefix
from shared.provenance.overview_ports import ChainOverview, ChainSummary, compute_latest_verdict_time
from shared.provenance.ports import ChainKey
from shared.provenance.verifier import ChainVerifier, VerificationRun, store_verification_result
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339

RUN_SECONDS: Final = 600.0
STEP_RECORDS: Final = 131_072
"""Number of records that are verified between two checks of the time limit."""
_PAGE: Final = 1_000
_LOG = get_logger("verification")

type OnBroken = Callable[[ChainKey, str, str, str], Awaitable[None]]


class BackgroundVerification:
    """Verifies all chains of the workspace and stores the results.

    Args:
        overview: store of the chains' summaries and of the results of their last verifications.
        verifier: verifies single chains.
        checkpoints: lists the chains that have checkpoints, also if the chains are missing in the store.
        on_broken: called for each broken chain, with the chain's key, the location of the fault (``broken_at``), the
            reason, and the start of the period (RFC 3339 in UTC). The result is stored before the call; if the call
            fails, a later run of the period repeats it, and so does another instance. It is also called once in a
            period for each chain that another verification has found broken.
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
        self._unfinished: VerificationRun | None = None
        self._period_start = ""
        self._reported: set[ChainKey] = set()
        self._interrupted: dict[ChainKey, int] = {}
        """Chains whose verification an outage ended in this period, with a number that grows with each failure."""
        self._failure_numbers = itertools.count(1)
        self._failed: set[ChainKey] = set()
        """Chains whose verification failed in this period, but not because of an outage."""
        self._outage: WorkspaceError | None = None

    async def try_verify_due_chains(self, period_start: datetime) -> bool:
        """Verify the audit chains that are due; return False if the time limit ended the run before all were verified.

        If the result is False, call this method again soon: it then verifies the remaining chains.

        Args:
            period_start: time at which the verification of all chains was due; chains that were verified later are not
                due. Another instance of the service may have verified some of the chains since.

        Raises:
            WorkspaceError: UNAVAILABLE if a store did not respond, so that chains were not found, verified or reported.
                All chains whose verification has not failed before in this period are verified. A later call with the
                same ``period_start`` repeats the rest.
        """
        deadline = self._runtime.monotonic() + self._seconds
        start = format_rfc3339(period_start)
        self._outage = None
        if start != self._period_start:
            self._period_start = start
            self._reported.clear()
            self._interrupted.clear()
            self._failed.clear()
        remaining = await self._verify_chains_until_deadline_and_list_rest(deadline, start)
        try:
            await self._report_other_broken_chains(start)
        except Exception as error:  # noqa: BLE001  an error of this method would delay the remaining chains
            _LOG.exception("broken audit chains could not be listed")
            self._remember_outage(error)
        # If only interrupted chains remain, they are tried again after a pause instead of at once.
        if all(chain in self._interrupted for chain in remaining) and self._outage is not None:
            raise self._outage
        return not remaining

    def _remember_outage(self, error: Exception) -> None:
        """Remember an error of this run if it means that a store did not respond, so that a later run can succeed."""
        if _is_outage(error):
            self._outage = error

    async def _verify_chains_until_deadline_and_list_rest(
        self, deadline: float, period_start: str
    ) -> Sequence[ChainKey]:
        """Verify the chains that are due; return those that remain when the time limit is reached.

        Args:
            deadline: time limit, on the monotonic clock.
            period_start: start of the period, RFC 3339 in UTC with microseconds.
        """
        due = await self._list_due_chains(period_start)
        await self._discard_outdated_run()
        if (unfinished := self._unfinished) is not None:
            # A verification that began before this period does not include the records that were appended since.
            rest = (
                due if unfinished.started_at < period_start else [chain for chain in due if chain != unfinished.chain]
            )
            due = [unfinished.chain, *rest]
        for number, chain in enumerate(due):
            if self._runtime.monotonic() >= deadline or not await self._try_verify_chain_until_deadline(
                chain, deadline, period_start
            ):
                return due[number:]
        return ()

    async def _discard_outdated_run(self) -> None:
        """Discard the unfinished verification if another verification of the chain has ended since it began."""
        if self._unfinished is None:
            return
        verdict = await self._overview.find_verdict(self._unfinished.chain)
        latest = compute_latest_verdict_time(self._runtime.now())
        if verdict is not None and self._unfinished.started_at < verdict.verified_at <= latest:
            self._unfinished = None

    async def _list_due_chains(self, period_start: str) -> list[ChainKey]:
        """Return the chains that must be verified, sorted by the time of their last verification, oldest first.

        The chains whose verification an outage ended in this period are last, beginning with the one that was tried
        least recently, so that each of them has its turn. Chains that failed without an outage are not returned.
        """
        due: list[tuple[str, ChainKey]] = []
        known: set[str] = set()
        latest = compute_latest_verdict_time(self._runtime.now())
        after: ChainKey | None = None
        while page := await self._overview.list_chains(None, after, _PAGE):
            after = page[-1].chain
            known.update(build_checkpoint_name_prefix(one.chain) for one in page)
            due += [
                (one.verdict.verified_at if one.verdict else "", one.chain)
                for one in page
                if _is_verification_due(one, period_start, latest)
            ]
        missing = await self._list_due_chains_missing_in_overview(known, period_start)
        chains = [chain for chain in (*missing, *(chain for _, chain in sorted(due))) if chain not in self._failed]
        return sorted(chains, key=lambda chain: self._interrupted.get(chain, 0))

    async def _list_due_chains_missing_in_overview(
        self, known_prefixes: Collection[str], period_start: str
    ) -> list[ChainKey]:
        """Return the chains that have checkpoints but were deleted, if they are due for verification.

        Args:
            known_prefixes: checkpoint name prefixes of the chains that exist.
            period_start: start of the period, RFC 3339 in UTC with microseconds.
        """
        try:
            missing = await self._checkpoints.find_checkpointed_chains_except(known_prefixes)
        except WorkspaceError as error:
            _LOG.warning("missing chains could not be searched: %s", error)
            self._remember_outage(error)
            return []
        latest = compute_latest_verdict_time(self._runtime.now())
        summaries = [ChainSummary(chain, 0, "", verdict=await self._overview.find_verdict(chain)) for chain in missing]
        return [summary.chain for summary in summaries if _is_verification_due(summary, period_start, latest)]

    async def _try_verify_chain_until_deadline(self, chain: ChainKey, deadline: float, period_start: str) -> bool:
        """Verify a chain and store the result; return False if the time limit is reached before the end of the chain.

        If the verification fails with an error, it is logged and remembered, and the result is True, so that the other
        chains are verified. The chain is due again in the next run after an outage, else in the next period.

        Args:
            chain: chain to verify.
            deadline: time limit, on the monotonic clock.
            period_start: start of the period, RFC 3339 in UTC with microseconds.
        """
        try:
            run, self._unfinished = self._unfinished, None
            if run is None or run.chain != chain:
                run = await self._verifier.start(chain)
            while not await self._verifier.verify_next_records_and_check_end(run, STEP_RECORDS):
                if self._runtime.monotonic() >= deadline:
                    self._unfinished = run
                    return False
            await self._finish_verification(run, period_start)
        except Exception as error:  # noqa: BLE001  a failure must not stop the other chains
            if is_outage := _is_outage(error):
                self._interrupted[chain] = next(self._failure_numbers)
            else:
                self._failed.add(chain)
            cause = "outage" if is_outage else "error"
            count("workspace.chain.verify.failures", target=chain.target.value, cause=cause)
            _log_failure("an audit chain could not be verified", chain, error)
            self._remember_outage(error)
        return True

    async def _finish_verification(self, run: VerificationRun, period_start: str) -> None:
        """Complete a verification: store the result, report the chain if it is broken, and repair subtree roots."""
        verdict = await self._verifier.finish(run)
        count("workspace.chain.verified", target=run.chain.target.value, sound=verdict.chain_valid)
        # If a valid chain has grown since an earlier period, it stays due in this period, also in the next run.
        is_outdated = verdict.chain_valid and run.started_at < period_start
        verified_at = run.started_at if is_outdated else format_rfc3339(self._runtime.now())
        await store_verification_result(self._overview, run, verdict, verified_at)
        if not verdict.chain_valid:
            await self._try_report_broken_chain(run.chain, verdict.broken_at or "", verdict.reason)
        await self._verifier.repair_subtree_roots(run, verdict)

    async def _try_report_broken_chain(self, chain: ChainKey, broken_at: str, reason: str) -> None:
        """Report a broken chain; log and remember an error, because it must not stop other verifications or reports."""
        try:
            if self._on_broken is not None:
                await self._on_broken(chain, broken_at, reason, self._period_start)
            self._reported.add(chain)
        except Exception as error:  # noqa: BLE001  a failure must not stop the other reports
            _log_failure("a broken audit chain could not be reported", chain, error)
            self._remember_outage(error)

    async def _report_other_broken_chains(self, period_start: str) -> None:
        """Report the broken chains that were verified in this period, but that this object has not reported.

        A request or an audit bundle has verified them, or their report failed. They are not due. If a report fails
        again, the chain is reported in the next run.
        """
        after: ChainKey | None = None
        while page := await self._overview.list_chains(None, after, _PAGE, broken_only=True):
            after = page[-1].chain
            for chain, verdict in ((one.chain, one.verdict) for one in page if one.chain not in self._reported):
                if verdict is not None and verdict.verified_at >= period_start:
                    await self._try_report_broken_chain(chain, verdict.broken_at, verdict.reason)


def _is_verification_due(summary: ChainSummary, period_start: str, latest_verdict_time: str) -> bool:
    verdict = summary.verdict
    if verdict is None or verdict.verified_at > latest_verdict_time:
        return True
    # A chain that grows during a period is due in the next one.
    return verdict.verified_at < period_start and (verdict.records != summary.records or not verdict.is_valid)


def _is_outage(error: Exception) -> TypeGuard[WorkspaceError]:
    """Return whether an error means that a store did not respond, so that a later attempt can succeed."""
    return isinstance(error, WorkspaceError) and error.kind is Kind.UNAVAILABLE and not is_permanent(error)


def _log_failure(message: str, chain: ChainKey, error: Exception) -> None:
    extra = fields(target=chain.target, scopeKey=chain.scope_key)
    if isinstance(error, WorkspaceError):
        _LOG.warning("%s: %s", message, error, extra=extra)
    else:
        _LOG.error(message, exc_info=error, extra=extra)
