"""What the Cosmos DB adapter has used and met, as plain counters for whoever exports metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class CosmosUsage:
    """Counters since the adapter was made.

    Attributes:
        requests: answered with success.
        request_units: charged for them, and for failures that named their charge.
        read_retries: reads that were sent again.
        throttled: batches refused with 429 and sent again.
        conflicts: batches refused since the chain's tip was another one.
        unknown_outcomes: batches of which the service did not say whether they were written.
    """

    requests: int = 0
    request_units: float = 0.0
    read_retries: int = 0
    throttled: int = 0
    conflicts: int = 0
    unknown_outcomes: int = 0

    def answered(self, headers: Mapping[str, Any], _body: object = None) -> None:
        """Count a reply; the SDK's ``response_hook``."""
        self.requests += 1
        self.charged(headers)

    def charged(self, headers: Mapping[str, Any]) -> None:
        """Add the charge that a reply names, if it does."""
        self.request_units += float(headers.get("x-ms-request-charge") or 0)
