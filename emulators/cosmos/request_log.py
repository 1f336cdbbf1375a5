"""What came in and what went out, for tests to assert on."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock

from emulators.cosmos.faults import FaultKind
from emulators.cosmos.wire import Request

_KEPT = 100_000


@dataclass(frozen=True)
class Exchange:
    """One request and how it was answered.

    Attributes:
        request: The request, without its body.
        size: The body's length in bytes.
        status: The status sent; 0 if the connection was dropped without one.
        substatus: The sub-status sent.
        fault: The fault that struck, if any.
    """

    request: Request
    size: int
    status: int
    substatus: int
    fault: FaultKind | None


class RequestLog:
    """The newest exchanges, oldest first; bodies are not kept."""

    def __init__(self) -> None:
        self._exchanges: deque[Exchange] = deque(maxlen=_KEPT)
        self._lock = Lock()

    def add(self, request: Request, status: int, substatus: int, fault: FaultKind | None) -> None:
        """Notes an exchange."""
        bare = Request(request.method, request.segments, request.headers, b"", request.operation)
        with self._lock:
            self._exchanges.append(Exchange(bare, len(request.body), status, substatus, fault))

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._exchanges.clear()

    def of(self, operation: str) -> list[Exchange]:
        """Gives the exchanges of one operation."""
        return [exchange for exchange in self if exchange.request.operation == operation]

    def operations(self) -> Counter[str]:
        """Counts the exchanges by operation."""
        return Counter(exchange.request.operation for exchange in self)

    def __iter__(self) -> Iterator[Exchange]:
        with self._lock:
            return iter(list(self._exchanges))

    def __len__(self) -> int:
        return len(self._exchanges)
