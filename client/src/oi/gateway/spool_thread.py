"""Thread for all access to the spool file (messages that wait to be sent), so that the event loop is never blocked."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from oi.gateway.spool import GatewaySpool

_Result = TypeVar("_Result")


class SpoolThread:
    """Runs functions that access the spool file one after the other in a separate thread.

    Args:
        spool: the spool; from now on, only this thread may call its methods. Other threads may read its counters.
    """

    def __init__(self, spool: GatewaySpool) -> None:
        self.spool = spool
        self._executor = ThreadPoolExecutor(1, "spool")

    async def run(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run a function in the thread of the spool and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run a function in the thread of the spool later, and ignore its result and its errors."""
        self._executor.submit(function, *arguments)

    def close(self) -> None:
        """Wait until the running function has ended, and close the spool."""
        self._executor.submit(self.spool.close)
        self._executor.shutdown(wait=True)
