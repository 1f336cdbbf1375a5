"""Retry policies of functions: how long to wait before a failed batch is delivered again, and when to give up."""

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
        max_retry_count: deliveries after the first, -1 without end.
        minimum: seconds before the first of them.
        maximum: upper bound of the delay in seconds; equal to ``minimum`` the delay is fixed.
    """

    max_retry_count: int
    minimum: float
    maximum: float

    def is_exhausted(self, retries: int) -> bool:
        """Return whether nothing is left after this many retries."""
        return self.max_retry_count != ENDLESS and retries >= self.max_retry_count

    def delay(self, retries: int) -> float:
        """Return the seconds to wait after this many retries: doubling, with jitter, within the bounds."""
        if self.minimum >= self.maximum:
            return self.minimum
        base = self.minimum * float(2 ** min(retries, _MAX_EXPONENT))
        return min(self.maximum, base * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311  not a secret


REDELIVERY = RetryPolicy(max_retry_count=ENDLESS, minimum=0.5, maximum=30)
"""For functions that declare no policy: the embedded hub stays at-least-once."""


def read_retry_policy(options: Any) -> RetryPolicy | None:
    """Return the policy that the worker library reports for a function, None where it declares none."""
    if options is None:
        return None
    if options.retry_strategy == "fixed_delay":
        delay = options.delay_interval.total_seconds()
        return RetryPolicy(options.max_retry_count, delay, delay)
    minimum = max(options.minimum_interval.total_seconds(), REDELIVERY.minimum)
    return RetryPolicy(options.max_retry_count, minimum, options.maximum_interval.total_seconds())
