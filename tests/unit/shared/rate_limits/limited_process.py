"""Service instance in a test process, in which one principal sends requests on an accelerated clock.

Arguments: ``sqlite`` or ``cosmos``, the file or the address, the factor by which the clock is faster, the number of
requests per minute of that clock, the budget, and the duration in seconds of that clock. The process prints ``ready``
and reads the start time of the real clock from standard input. At the end it prints a JSON object with the times of the
admitted requests, the number of rejected requests, and the number of store calls.
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


class CountingStore:
    """Wrapper of a store of budget leases that counts the calls."""

    def __init__(self, store: LeaseStore) -> None:
        self._store = store
        self.calls = 0

    async def lease_budget_slice(self, request: LeaseRequest, read_time: Callable[[], float]) -> Lease:
        """Count the call, and lease a slice of the budget from the store."""
        self.calls += 1
        return await self._store.lease_budget_slice(request, read_time)


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


async def main(kind: str, address: str, speed: float, rate: float, budget: int, seconds: float) -> None:
    """Send requests until the end of the run."""
    store = CountingStore(_open_store(kind, address))
    await store.lease_budget_slice(LeaseRequest("other", "warm-up", "", 0, 0, 1, 0, 1), time.time)
    store.calls = 0
    print("ready", flush=True)  # noqa: T201  the test waits for it
    start = float(await asyncio.to_thread(sys.stdin.readline))

    def read_clock() -> float:
        return start + (time.time() - start) * speed

    limiter = RateLimiter(
        store, runtime=Runtime(now=lambda: datetime.fromtimestamp(read_clock(), UTC), monotonic=read_clock)
    )
    admitted: list[float] = []
    sent = 0
    while (now := read_clock()) < start + seconds:
        if sent >= (now - start) * rate / 60:
            await asyncio.sleep(0.001)
            continue
        sent += 1
        async with limiter.admit("p", Budget(budget, budget)) as decision:
            if decision.rejection is None:
                admitted.append(read_clock() - start)
    print(json.dumps({"admitted": admitted, "rejected": sent - len(admitted), "calls": store.calls}))  # noqa: T201  read


if __name__ == "__main__":
    _kind, _address, *_numbers = sys.argv[1:]
    _speed, _rate, _budget, _seconds = map(float, _numbers)
    asyncio.run(main(_kind, _address, _speed, _rate, int(_budget), _seconds))
