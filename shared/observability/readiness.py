"""Readiness check of the process: checks all dependencies concurrently, with a timeout and a short cache."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime

READY_SECONDS: Final = 5.0
"""Timeout of the check of each dependency, in seconds."""
CACHE_SECONDS: Final = 1.0
"""Seconds for which a result is reused for further callers, so that frequent polling is cheap."""

type Probe = Callable[[], Awaitable[None]]
"""Check of one dependency, which raises an exception if the dependency does not respond."""

_LOG = logs.get_logger("readiness")
_host_probes: dict[str, Probe] = {}


def add_readiness_probe(dependency_name: str, probe: Probe) -> None:
    """Register a readiness check for a dependency of the host process; the checks of the app's stores are built in.

    Args:
        dependency_name: name of the dependency in the reply of the readiness check.
        probe: check of the dependency.
    """
    _host_probes[dependency_name] = probe


_running: list[str] = []


@contextmanager
def report_background_work(work_name: str) -> Iterator[None]:
    """Context manager: list background work in the reply of the readiness check while the block runs.

    Args:
        work_name: name of the work in the reply.
    """
    _running.append(work_name)
    try:
        yield
    finally:
        _running.remove(work_name)


def list_running_background_work() -> list[str]:
    """Return the names of the running work that :func:`report_background_work` reports."""
    return list(dict.fromkeys(_running))


class Readiness:
    """Readiness check of all dependencies of the process.

    Args:
        probes: returns the checks of the app's own dependencies, by name.
        cache_seconds: seconds for which a result is reused.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        probes: Callable[[], Mapping[str, Probe]],
        *,
        cache_seconds: float = CACHE_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self.cache_seconds = cache_seconds
        self._probes = probes
        self._lock = asyncio.Lock()
        self._failing: list[str] = []
        self._checked_at = float("-inf")
        self._runtime = runtime

    async def list_failing_dependencies(self) -> list[str]:
        """Return the names of the dependencies that are not ready; the result is at most ``cache_seconds`` old."""
        if not self._is_result_fresh():
            async with self._lock:
                if not self._is_result_fresh():
                    self._failing = await self._probe_and_list_failing_dependencies()
                    self._checked_at = self._runtime.monotonic()
        return list(self._failing)

    def _is_result_fresh(self) -> bool:
        return self._runtime.monotonic() - self._checked_at < self.cache_seconds

    async def _probe_and_list_failing_dependencies(self) -> list[str]:
        probes = {**self._probes(), **_host_probes}
        results = await asyncio.gather(*(_is_dependency_ready(name, probe) for name, probe in probes.items()))
        return [name for name, succeeded in zip(probes, results, strict=True) if not succeeded]


async def _is_dependency_ready(dependency_name: str, probe: Probe) -> bool:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await probe()
    except Exception as error:  # noqa: BLE001  a probe of any adapter can raise any exception
        _LOG.warning("not ready", extra=logs.fields(store=dependency_name, error=type(error).__name__))
        return False
    return True
