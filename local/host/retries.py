"""Retry policies of functions: delays and number of retries for a batch of events that failed."""

import random
from dataclasses import dataclass
from typing import Any

ENDLESS = -1
_JITTER = 0.2
_MAX_EXPONENT = 30


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A function's retry policy.

    Attributes:
        max_retry_count: maximum number of retries; -1 for no limit.
        minimum: delay before the first retry in seconds.
        maximum: longest delay in seconds; all delays are equal if ``maximum`` equals ``minimum``.
    """

    max_retry_count: int
    minimum: float
    maximum: float

    def is_exhausted(self, retry_count: int) -> bool:
        """Return whether the number of retries so far has reached the maximum."""
        return self.max_retry_count != ENDLESS and retry_count >= self.max_retry_count

    def compute_delay_seconds(self, retry_count: int) -> float:
        """Return the seconds to wait before the next retry: exponential in the retries so far, with jitter."""
        if self.minimum >= self.maximum:
            return self.minimum
        base = self.minimum * float(2 ** min(retry_count, _MAX_EXPONENT))
        return min(self.maximum, base * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311  not a secret


REDELIVERY = RetryPolicy(max_retry_count=ENDLESS, minimum=0.5, maximum=30)
"""Policy of functions that declare none: retries without a limit, for at-least-once delivery."""


def retry_policy_from_worker_options(worker_options: Any) -> RetryPolicy | None:
    """Convert the worker library's retry options of a function; return None if the function declares no retries."""
    if worker_options is None:
        return None
    if worker_options.retry_strategy == "fixed_delay":
        delay = worker_options.delay_interval.total_seconds()
        return RetryPolicy(worker_options.max_retry_count, delay, delay)
    minimum = max(worker_options.minimum_interval.total_seconds(), REDELIVERY.minimum)
    return RetryPolicy(worker_options.max_retry_count, minimum, worker_options.maximum_interval.total_seconds())
