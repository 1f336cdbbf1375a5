"""Run as a process by tests: an instance that is asked by one principal, at a rate, on a clock that runs faster.

Arguments: ``sqlite`` or ``cosmos``, the file or the address, how many times faster its clock runs, requests in a minute
of that clock, the budget, and how many of its seconds it goes on. When it is ready it says so and reads the moment of
the real clock at which to start; in the end it prints one JSON object: when requests were let in, how many were
refused, and how often the store was asked.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from shared.rate_limits.limiter import RateLimiter
from shared.rate_limits.models import Budget
from shared.rate_limits.ports import Lease, LeaseRequest, LeaseStore


class Counted:
    """The store, counting what is asked of it."""

    def __init__(self, store: LeaseStore) -> None:
        self._store = store
        self.calls = 0

    async def lease(self, asked: LeaseRequest, at: float) -> Lease:
        """Ask the store."""
        self.calls += 1
        return await self._store.lease(asked, at)


def _store(kind: str, address: str) -> LeaseStore:
    if kind == "sqlite":
        from shared.backends.embedded.rate_limits import SCHEMA, SqliteLeaseStore  # noqa: PLC0415  one adapter a process
        from shared.backends.embedded.sqlite import SqliteDatabase  # noqa: PLC0415

        return SqliteLeaseStore(SqliteDatabase(Path(address), SCHEMA))
    from emulators.cosmos.server import DEFAULT_KEY  # noqa: PLC0415
    from shared.backends.azure.cosmos_account import CosmosAccount  # noqa: PLC0415
    from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore  # noqa: PLC0415
    from tests.adapters.cosmos import DATABASE  # noqa: PLC0415

    return CosmosLeaseStore(CosmosAccount(address, DATABASE, key=DEFAULT_KEY), patience_seconds=60)


async def main(kind: str, address: str, speed: float, rate: float, budget: int, seconds: float) -> None:
    """Ask until the time is over."""
    store = Counted(_store(kind, address))
    await store.lease(LeaseRequest("nobody", "warm-up", "", 0, 0, 1, 0, 1), time.time())
    store.calls = 0
    print("ready", flush=True)  # noqa: T201  the test waits for it
    start = float(await asyncio.to_thread(sys.stdin.readline))

    def clock() -> float:
        return start + (time.time() - start) * speed

    limiter = RateLimiter(store, clock)
    admitted: list[float] = []
    asked = 0
    while (now := clock()) < start + seconds:
        if asked >= (now - start) * rate / 60:
            await asyncio.sleep(0.001)
            continue
        asked += 1
        async with limiter.admit("p", Budget(budget, budget)) as admission:
            if admission.refusal is None:
                admitted.append(clock() - start)
    print(json.dumps({"admitted": admitted, "refused": asked - len(admitted), "calls": store.calls}))  # noqa: T201  read


if __name__ == "__main__":
    _kind, _address, *_numbers = sys.argv[1:]
    _speed, _rate, _budget, _seconds = map(float, _numbers)
    asyncio.run(main(_kind, _address, _speed, _rate, int(_budget), _seconds))
