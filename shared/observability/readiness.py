"""Whether all that the process stands on answers: asked together, within a bounded time, and not for every caller."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from shared.observability import logs

READY_SECONDS: Final = 5.0
"""How long each has to answer."""
CACHE_SECONDS: Final = 1.0
"""For how long an answer serves further callers, so that polling costs nothing."""

type Probe = Callable[[], Awaitable[None]]
"""Returns when something answers, and raises whatever it likes when not."""

_LOG = logs.get_logger("readiness")
_of_the_host: dict[str, Probe] = {}


def add_probe(name: str, probe: Probe) -> None:
    """Add what the host of this process keeps beside the app's own stores.

    Args:
        name: as it is told.
        probe: of it.
    """
    _of_the_host[name] = probe


class Readiness:
    """Asks everything that the process stands on.

    Args:
        probes: gives the app's own, by name.
        kept_seconds: for how long an answer is kept.
    """

    def __init__(self, probes: Callable[[], Mapping[str, Probe]], *, cache_seconds: float = CACHE_SECONDS) -> None:
        self.cache_seconds = cache_seconds
        self._probes = probes
        self._asking = asyncio.Lock()
        self._failing: list[str] = []
        self._asked_at = float("-inf")

    async def find_failing(self) -> list[str]:
        """Return the names of what does not answer, as of at most ``cache_seconds`` ago."""
        if not self._is_fresh():
            async with self._asking:
                if not self._is_fresh():
                    self._failing = await self._ask()
                    self._asked_at = time.monotonic()
        return list(self._failing)

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._asked_at < self.cache_seconds

    async def _ask(self) -> list[str]:
        probes = {**self._probes(), **_of_the_host}
        answered = await asyncio.gather(*(_answers(name, probe) for name, probe in probes.items()))
        return [name for name, whether in zip(probes, answered, strict=True) if not whether]


async def _answers(name: str, probe: Probe) -> bool:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await probe()
    except Exception as error:  # noqa: BLE001  whatever it is, it is why the process is not ready
        _LOG.warning("not ready", extra=logs.fields(store=name, error=type(error).__name__))
        return False
    return True
