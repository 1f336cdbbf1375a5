"""Tests of the times at which a failed delivery is retried."""

from datetime import UTC, datetime, timedelta

from shared.runtime import SYSTEM_RUNTIME
from shared.webhooks.retry_schedule import RETRY_DELAYS, compute_retry_time

AT = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_delays_follow_the_documented_schedule() -> None:
    """A failed delivery is retried nine times, after five seconds to a day, each with a jitter of at most 10 %."""
    expected = [timedelta(seconds=5), HOUR / 12, HOUR / 2, *(HOUR * n for n in (2, 5, 10, 14, 20, 24))]
    assert list(RETRY_DELAYS) == expected
    for retries, delay in enumerate(expected):
        for _ in range(20):
            planned = compute_retry_time(retries, AT, SYSTEM_RUNTIME)
            assert planned is not None
            assert delay * 0.9 <= planned - AT <= delay * 1.1
    assert compute_retry_time(len(expected), AT, SYSTEM_RUNTIME) is None
