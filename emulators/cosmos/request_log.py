"""Log of requests and replies for tests."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

from emulators.cosmos.faults import FaultKind
from emulators.cosmos.wire import CosmosRequest

_MAX_ENTRIES = 100_000


@dataclass(frozen=True)
class LoggedRequest:
    """Logged request and its reply.

    Attributes:
        request: The request, without its body.
        size: The body's length in bytes.
        status: The status sent; 0 if the connection was dropped without one.
        substatus: The sub-status sent.
        fault: The applied fault, if any.
    """

    request: CosmosRequest
    size: int
    status: int
    substatus: int
    fault: FaultKind | None


class RequestLog:
    """Log of the newest requests, oldest first, without bodies."""

    def __init__(self) -> None:
        self._entries: deque[LoggedRequest] = deque(maxlen=_MAX_ENTRIES)
        self._lock = Lock()

    def add(self, request: CosmosRequest, status: int, substatus: int, fault: FaultKind | None) -> None:
        """Add a request."""
        bare = CosmosRequest(request.method, request.segments, request.headers, b"", request.operation)
        with self._lock:
            self._entries.append(LoggedRequest(bare, len(request.body), status, substatus, fault))

    def clear(self) -> None:
        """Remove all requests."""
        with self._lock:
            self._entries.clear()

    def for_operation(self, operation: str) -> list[LoggedRequest]:
        """Return the requests of one operation."""
        return [entry for entry in self if entry.request.operation == operation]

    def count_by_operation(self) -> Counter[str]:
        """Count the requests by operation."""
        return Counter(entry.request.operation for entry in self)

    def __iter__(self) -> Iterator[LoggedRequest]:
        with self._lock:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)
