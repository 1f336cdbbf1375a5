"""Retry schedule of webhook deliveries."""

from datetime import datetime, timedelta
from typing import Final

from shared.runtime import Runtime

RETRY_DELAYS: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
JITTER: Final = 0.1
"""Largest random deviation of a delay, as a fraction; it spreads the retries after an outage."""

DISABLED_AFTER: Final = timedelta(days=5)
"""Duration after which an endpoint is disabled if all attempts have failed."""


def compute_retry_time(retries: int, at: datetime, runtime: Runtime) -> datetime | None:
    """Compute the time of the next attempt to send a webhook delivery; None if all retries are used.

    Args:
        retries: number of retries so far.
        at: time of the failed attempt.
        runtime: source of randomness for the jitter.
    """
    if retries >= len(RETRY_DELAYS):
        return None
    return at + RETRY_DELAYS[retries] * runtime.uniform(1 - JITTER, 1 + JITTER)
