"""Faults that tests inject into requests, such as dropped connections, error replies and delays."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from threading import Lock

from emulators.cosmos.wire import CosmosRequest


class FaultKind(StrEnum):
    """Kinds of faults that tests inject into requests to the Cosmos DB test server.

    The comment at each kind states whether the server executes the affected request.
    """

    DROP_BEFORE_COMMIT = "drop before commit"  # not executed, the connection is closed
    DROP_AFTER_COMMIT = "drop after commit"  # executed, the connection is closed without a reply
    DROP_IN_REPLY = "drop in reply"  # executed, the connection is closed in the middle of the reply
    STATUS = "status"  # not executed, the reply is an error status
    STATUS_AFTER_COMMIT = "status after commit"  # executed, the reply is an error status
    BATCH_STATUS = "batch status"  # not executed, a 207 reply has the status on the first operation
    DELAY = "delay"  # executed after the delay
    DELAY_AFTER_COMMIT = "delay after commit"  # executed, the reply is delayed
    PARTIAL_PAGE = "partial page"  # a page has fewer items than requested, with a continuation


_OPERATIONS = {FaultKind.BATCH_STATUS: ("batch",), FaultKind.PARTIAL_PAGE: ("query", "read_feed")}


def _match_every_request(_: CosmosRequest) -> bool:
    return True


@dataclass
class InjectedFault:
    """Fault that a test injects into matching requests.

    Attributes:
        kind: The kind of the fault.
        match: Function that returns whether the fault can affect a request; called in the server's thread.
        times: The maximum number of affected requests; None for no limit.
        probability: The probability, from 0 to 1, that the fault affects a matching request.
        seed: The seed of the random numbers that decide whether a request is affected.
        status: The HTTP status of the reply, for STATUS, STATUS_AFTER_COMMIT and BATCH_STATUS.
        substatus: The sub-status of this reply (header `x-ms-substatus`).
        retry_after_ms: The delay in milliseconds after which this reply asks the client to retry.
        seconds: The duration of DELAY and DELAY_AFTER_COMMIT.
        page_size: The maximum number of items in a page, for PARTIAL_PAGE; can be 0. An aggregate is computed over this
            number of items, and the next page has the aggregate over the next items.
        reset: True if a dropped connection is reset (RST) instead of closed (FIN).
        applied: The number of requests that the fault has affected so far.
    """

    kind: FaultKind
    match: Callable[[CosmosRequest], bool] = _match_every_request
    times: int | None = None
    probability: float = 1.0
    seed: int = 0
    status: int = 503
    substatus: int = 0
    retry_after_ms: int | None = None
    seconds: float = 0.0
    page_size: int = 1
    reset: bool = False
    applied: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.reseed(self.seed)

    def reseed(self, seed: int) -> None:
        """Restart the random number generator that selects the affected requests, with a new seed."""
        self._random = random.Random(seed)  # noqa: S311  test faults, not secrets

    def try_apply_to_request(self, request: CosmosRequest) -> bool:
        """Return whether the fault affects this request; if it does, count the request."""
        if self.times is not None and self.applied >= self.times:
            return False
        if request.operation not in _OPERATIONS.get(self.kind, (request.operation,)) or not self.match(request):
            return False
        if self._random.random() >= self.probability:
            return False
        self.applied += 1
        return True


class FaultInjector:
    """Faults of one test server, which tests add and remove while the server runs."""

    def __init__(self) -> None:
        self._faults: list[InjectedFault] = []
        self._lock = Lock()

    def add(self, fault: InjectedFault) -> InjectedFault:
        """Add a fault and return it. If several faults match a request, only the first affects it."""
        self.add_all([fault])
        return fault

    def add_all(self, faults: Iterable[InjectedFault]) -> None:
        """Add several faults, in this order."""
        with self._lock:
            self._faults.extend(faults)

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    def find_fault_for_request(self, request: CosmosRequest) -> InjectedFault | None:
        """Return the fault that affects a request, and count the request; None if no fault affects it."""
        with self._lock:
            return next((fault for fault in self._faults if fault.try_apply_to_request(request)), None)


def build_random_faults(
    probability: float,
    seed: int,
    match: Callable[[CosmosRequest], bool] = _match_every_request,
    *,
    delay_seconds: float = 0.02,
) -> list[InjectedFault]:
    """Build faults of every kind, of which each is equally likely; a correct client can handle all of them.

    Args:
        probability: The probability, from 0 to 1, that one of the faults affects a matching request.
        seed: The seed of the random numbers.
        match: Function that returns whether the faults can affect a request.
        delay_seconds: The duration of delays; if it exceeds the client's timeout, the client receives no reply.
    """
    shapes: list[InjectedFault] = [
        InjectedFault(FaultKind.DROP_BEFORE_COMMIT),
        InjectedFault(FaultKind.DROP_AFTER_COMMIT),
        InjectedFault(FaultKind.DROP_AFTER_COMMIT, reset=True),
        InjectedFault(FaultKind.DROP_IN_REPLY),
        InjectedFault(FaultKind.STATUS, status=408),
        InjectedFault(FaultKind.STATUS_AFTER_COMMIT, status=408),
        InjectedFault(FaultKind.STATUS, status=410, substatus=1002),
        InjectedFault(FaultKind.STATUS, status=410, substatus=1007),
        InjectedFault(FaultKind.STATUS, status=412),
        InjectedFault(FaultKind.STATUS, status=429, substatus=3200, retry_after_ms=5),
        InjectedFault(FaultKind.BATCH_STATUS, status=429, retry_after_ms=5),
        InjectedFault(FaultKind.STATUS, status=449),
        InjectedFault(FaultKind.STATUS, status=500),
        InjectedFault(FaultKind.STATUS_AFTER_COMMIT, status=500),
        InjectedFault(FaultKind.STATUS, status=503),
        InjectedFault(FaultKind.STATUS_AFTER_COMMIT, status=503),
        InjectedFault(FaultKind.DELAY, seconds=delay_seconds),
        InjectedFault(FaultKind.PARTIAL_PAGE, page_size=1),
        InjectedFault(FaultKind.DELAY_AFTER_COMMIT, seconds=delay_seconds),
        InjectedFault(FaultKind.PARTIAL_PAGE, page_size=0),
        InjectedFault(FaultKind.BATCH_STATUS, status=449, retry_after_ms=5),
    ]
    share = 1 - (1 - probability) ** (1 / len(shapes))
    for index, fault in enumerate(shapes):
        fault.match, fault.probability = match, share
        fault.reseed(seed + index)
    return shapes


def build_random_read_faults(
    probability: float,
    seed: int,
    match: Callable[[CosmosRequest], bool] = _match_every_request,
    *,
    delay_seconds: float = 0.02,
) -> list[InjectedFault]:
    """Build the same faults as `build_random_faults` except status 412, because reads have no preconditions."""
    every = build_random_faults(probability, seed, match, delay_seconds=delay_seconds)
    return [fault for fault in every if fault.status != HTTPStatus.PRECONDITION_FAILED]
