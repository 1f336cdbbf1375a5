"""Runner of all sources of webhook events.

The background timer starts it, and also each change that can cause an event.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from shared.errors import WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count

_LOG: Final = get_logger("webhooks")


class EventSources:
    """Publishes webhook events about all stored changes, and wakes the worker that sends them.

    Args:
        sources: functions that publish the events of one kind of change, by their names for the log.
        wake: makes the worker look for due deliveries.
    """

    def __init__(self, sources: Mapping[str, Callable[[], Awaitable[object]]], wake: Callable[[], None]) -> None:
        self._sources = sources
        self._wake = wake
        self._task: asyncio.Task[None] | None = None
        self._is_requested = False
        self._is_closed = False

    async def run(self) -> None:
        """Run each source once. If a source fails, the others still run, and the next run repeats the failed work."""
        for name, source in self._sources.items():
            try:
                await source()
            except WorkspaceError as error:
                count("workspace.webhooks.source_failures", source=name)
                _LOG.warning(
                    "events were not published; the next run publishes them: %s", error, extra=fields(source=name)
                )
        self._wake()

    def nudge(self) -> None:
        """Run the sources soon, without waiting for the timer.

        Several calls during a run cause only one further run.
        """
        self._is_requested = True
        if not self._is_closed and (self._task is None or self._task.done()):
            # The task serves many requests, so it must not inherit the log context of the first one.
            self._task = asyncio.get_running_loop().create_task(self._run_requested(), context=contextvars.Context())

    async def close(self) -> None:
        """Stop a running task; the next run of any instance repeats its work."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run_requested(self) -> None:
        while self._is_requested:
            self._is_requested = False
            await self.run()
