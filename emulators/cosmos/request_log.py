"""Log of the requests to the test server, so that tests can check which requests a client has sent."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

from emulators.cosmos.faults import FaultKind
from emulators.cosmos.wire import CosmosRequest

_MAX_ENTRIES = 100_000


@dataclass(frozen=True)
class LoggedRequest:
    """Request to the test server with the status of its reply.

    Attributes:
        request: The request, without its body.
        size: The length of the request's body in bytes.
        status: The HTTP status of the reply; 0 if the connection was dropped without a reply.
        substatus: The sub-status of the reply (header `x-ms-substatus`); 0 for none.
        fault: The kind of the fault that affected the request; None for no fault.
    """

    request: CosmosRequest
    size: int
    status: int
    substatus: int
    fault: FaultKind | None


class RequestLog:
    """Log of the newest requests to the test server, oldest first, without bodies."""

    def __init__(self) -> None:
        self._entries: deque[LoggedRequest] = deque(maxlen=_MAX_ENTRIES)
        self._lock = Lock()

    def add(self, request: CosmosRequest, status: int, substatus: int, fault_kind: FaultKind | None) -> None:
        """Add a request and the status of its reply to the log."""
        bare = CosmosRequest(request.method, request.segments, request.headers, b"", request.operation)
        with self._lock:
            self._entries.append(LoggedRequest(bare, len(request.body), status, substatus, fault_kind))

    def clear(self) -> None:
        """Remove all requests from the log."""
        with self._lock:
            self._entries.clear()

    def list_by_operation(self, operation: str) -> list[LoggedRequest]:
        """Return the logged requests for one operation, such as `create_item`."""
        return [entry for entry in self if entry.request.operation == operation]

    def count_by_operation(self) -> Counter[str]:
        """Count the logged requests by operation."""
        return Counter(entry.request.operation for entry in self)

    def __iter__(self) -> Iterator[LoggedRequest]:
        with self._lock:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)
