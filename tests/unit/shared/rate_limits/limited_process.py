"""Service instance in a test process, in which one principal sends requests on a clock that the test moves.

Arguments: ``sqlite`` or ``cosmos``, the file or the address, the number of requests per minute, and the budget. The
process prints ``ready``. Each line of standard input sets the clock to a number of seconds since the start; the process
then sends the requests that are due, and prints a line when it has the replies. At the end of standard input it prints
a JSON object with the times of the admitted requests, the number of rejected requests, and the number of store calls.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from shared.rate_limits.limiter import RateLimiter
from shared.rate_limits.models import Budget
from shared.rate_limits.ports import Lease, LeaseRequest, LeaseStore
from shared.runtime import Runtime

START = datetime(2026, 1, 5, 8, tzinfo=UTC).timestamp()
"""Time at which the clock of every process starts."""


class CountingStore:
    """Wrapper of a store of budget leases that counts the calls."""

    def __init__(self, store: LeaseStore) -> None:
        self._store = store
        self.calls = 0

    async def lease_budget_slice(self, request: LeaseRequest, read_unix_seconds: Callable[[], float]) -> Lease:
        """Count the call, and lease a slice of the budget from the store."""
        self.calls += 1
        return await self._store.lease_budget_slice(request, read_unix_seconds)


def _open_store(kind: str, address: str) -> LeaseStore:
    if kind == "sqlite":
        from shared.backends.embedded.rate_limits import SCHEMA, SqliteLeaseStore  # noqa: PLC0415  one adapter a process
        from shared.backends.embedded.sqlite import SqliteDatabase  # noqa: PLC0415

        return SqliteLeaseStore(SqliteDatabase(Path(address), SCHEMA))
    from emulators.cosmos.service import DEFAULT_KEY  # noqa: PLC0415
    from shared.backends.azure.cosmos_account import CosmosAccount  # noqa: PLC0415
    from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore  # noqa: PLC0415
    from tests.adapters.cosmos import DATABASE  # noqa: PLC0415

    return CosmosLeaseStore(CosmosAccount(address, DATABASE, key=DEFAULT_KEY), timeout_seconds=60)


async def main(kind: str, address: str, rate: float, budget: int) -> None:
    """Send the requests that are due at each time in standard input."""
    store = CountingStore(_open_store(kind, address))
    await store.lease_budget_slice(LeaseRequest("other", "warm-up", "", 0, 0, 1, 0, 1), time.time)
    store.calls = 0
    print("ready", flush=True)  # noqa: T201  the test waits for it
    elapsed = 0.0

    def read_clock() -> float:
        return START + elapsed

    limiter = RateLimiter(
        store, runtime=Runtime(now=lambda: datetime.fromtimestamp(read_clock(), UTC), monotonic=read_clock)
    )
    admitted: list[float] = []
    sent = 0
    while line := await asyncio.to_thread(sys.stdin.readline):
        elapsed = float(line)
        while sent < elapsed * rate / 60:
            sent += 1
            async with limiter.admit("p", Budget(budget, budget)) as decision:
                if decision.rejection is None:
                    admitted.append(elapsed)
        print("done", flush=True)  # noqa: T201  the test waits for it
    print(json.dumps({"admitted": admitted, "rejected": sent - len(admitted), "calls": store.calls}))  # noqa: T201  read


if __name__ == "__main__":
    _kind, _address, _rate, _budget = sys.argv[1:]
    asyncio.run(main(_kind, _address, float(_rate), int(_budget)))
