"""Runner of all sources of webhook events.

The background timer starts the runner, and so does each change that can cause an event.

Events about ended downloads, broken audit chains and refused signatures have no source; their services publish them.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

from shared.downloads.models import Job
from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.provenance.ports import ChainKey
from shared.timestamps import format_rfc3339
from shared.webhooks.events import WebhookEvent, WebhookEventType

_LOG: Final = get_logger("webhooks")


class EventSources:
    """Publishes webhook events about all stored changes, and wakes the worker that sends them.

    Args:
        sources: functions that each publish the events of one kind of change, by their names in logs and metrics.
        wake: makes the worker look for due deliveries.
    """

    def __init__(self, sources: Mapping[str, Callable[[], Awaitable[object]]], wake: Callable[[], None]) -> None:
        self._sources = sources
        self._wake = wake
        self._task: asyncio.Task[None] | None = None
        self._is_requested = False
        self._is_closed = False

    async def run(self) -> None:
        """Run each source of webhook events once; if one fails, run the others. The next run repeats failed work."""
        for name, source in self._sources.items():
            try:
                await source()
            except Exception as error:  # noqa: BLE001  one source must not stop the others
                count("workspace.webhooks.source_failures", source=name)
                _log_source_failure(name, error)
        self._wake()

    def run_soon(self) -> None:
        """Run the sources of webhook events soon, without waiting for the timer.

        Several calls during a run cause only one further run.
        """
        self._is_requested = True
        if not self._is_closed and (self._task is None or self._task.done()):
            # The task serves many requests, so it must not inherit the log context of the first one.
            self._task = asyncio.get_running_loop().create_task(
                self._run_sources_while_requested(), context=contextvars.Context()
            )

    async def close(self) -> None:
        """Stop the task that runs the sources, if it is running; the next run of any instance repeats its work."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run_sources_while_requested(self) -> None:
        while self._is_requested:
            self._is_requested = False
            await self.run()


def _log_source_failure(source: str, error: Exception) -> None:
    if isinstance(error, WorkspaceError):
        _LOG.warning("events were not published; the next run publishes them: %s", error, extra=fields(source=source))
    else:
        # The next run possibly fails, too, for instance because of a damaged document.
        _LOG.error("events of a source could not be published", exc_info=error, extra=fields(source=source))


def build_download_event(job: Job, at: datetime) -> WebhookEvent:
    """Build the webhook event about a download that was completed or has failed."""
    data = {"downloadId": job.id, "status": job.status.value, "rows": job.row_count, "bytes": job.stored_bytes}
    key = f"{WebhookEventType.DOWNLOAD_COMPLETED}/{job.id}"
    connections = frozenset(job.connections) or None
    return WebhookEvent(key, WebhookEventType.DOWNLOAD_COMPLETED, at, data, connections=connections)


def build_broken_chain_event(
    chain: ChainKey, broken_at: str, reason: str, at: datetime, period_start: str
) -> WebhookEvent:
    """Build the webhook event about a broken audit chain.

    Its key contains the day on which the period of the verification began, so a broken chain is reported daily. A
    report that is repeated in the same period, possibly after midnight, has the same key.

    Args:
        chain: key of the chain.
        broken_at: location of the fault; empty if unknown.
        reason: description of the fault.
        at: time of the report.
        period_start: start of the period, RFC 3339 in UTC.
    """
    kind = WebhookEventType.AUDIT_CHAIN_BROKEN
    data = {
        "target": chain.target.value,
        "scopeKey": chain.scope_key or None,
        "brokenAt": broken_at or None,
        "reason": reason,
    }
    day = period_start[: len("YYYY-MM-DD")]
    return WebhookEvent(f"{kind}/{day}/{chain.target}/{broken_at}/{chain.scope_key}", kind, at, data)


def build_lock_out_event(
    member_id: str, event_id: str, at: datetime, refused_attempts: int, first_attempt_at: datetime
) -> WebhookEvent:
    """Build the webhook event about a member who cannot sign for some time, because signatures were refused.

    Args:
        member_id: id of the member.
        event_id: unique id of the lock-out.
        at: time of the lock-out.
        refused_attempts: number of refused attempts to sign.
        first_attempt_at: time of the first of these attempts.
    """
    kind = WebhookEventType.SIGNATURE_SUSPICIOUS
    data = {"userId": member_id, "attempts": refused_attempts, "since": format_rfc3339(first_attempt_at)}
    return WebhookEvent(f"{kind}/{event_id}", kind, at, data)
