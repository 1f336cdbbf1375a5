"""Throughput of a container: the request units that it accepts in each second.

Separate from ``service``, because only simulations limit the throughput.
"""

from emulators.cosmos.wire import CosmosError


class ThroughputBudget:
    """Request units that one container can still spend; they become available again as time passes.

    As in the Azure service, the charge of a request is known only after its execution. Therefore a request is accepted
    as long as the container has units left, even if its charge then exceeds them; later requests are rejected until the
    balance is positive again.

    Args:
        units_per_second: The request units that become available in each second, which are also the most that a
            container saves.
    """

    def __init__(self, units_per_second: float) -> None:
        self._rate = units_per_second
        self._used = 0.0
        self._at: float | None = None

    def check(self, now: float) -> None:
        """Check that the container has request units left before a request is executed.

        Args:
            now: The current time in seconds.

        Raises:
            CosmosError: 429 (sub-status 3200), with the time until the container accepts requests again.
        """
        passed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now
        self._used = max(0.0, self._used - passed * self._rate)
        if self._used >= self._rate:
            wait_ms = int((self._used - self._rate) / self._rate * 1000) + 1
            raise CosmosError(429, "The request rate is too large. More request units may be needed.", 3200, wait_ms)

    def spend(self, units: float) -> None:
        """Subtract the charge of an executed request."""
        self._used += units
