"""Faults that tests inject: what goes wrong, for which requests, how often."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from threading import Lock

from emulators.cosmos.wire import CosmosRequest


class FaultKind(StrEnum):
    """What goes wrong."""

    DROP_BEFORE_COMMIT = "drop before commit"  # the connection ends, nothing was done
    DROP_AFTER_COMMIT = "drop after commit"  # it was done, the connection ends without a reply
    DROP_IN_REPLY = "drop in reply"  # it was done, the connection ends in the middle of the reply's body
    STATUS = "status"  # refused with a status, nothing was done
    STATUS_AFTER_COMMIT = "status after commit"  # it was done, the reply is an error status
    BATCH_STATUS = "batch status"  # a batch is answered 207 with the status on its first operation, nothing was done
    DELAY = "delay"  # nothing is done before the delay has passed
    DELAY_AFTER_COMMIT = "delay after commit"  # it was done, the reply comes late
    PARTIAL_PAGE = "partial page"  # a page has fewer items than asked, with a continuation


_ONLY = {FaultKind.BATCH_STATUS: ("batch",), FaultKind.PARTIAL_PAGE: ("query", "read_feed")}


def _match_all(_: CosmosRequest) -> bool:
    return True


@dataclass
class InjectedFault:
    """One thing that goes wrong.

    Attributes:
        kind: What goes wrong.
        match: Which requests it may strike; it runs in the server's thread.
        times: How often it strikes at most; None for as often as it may.
        probability: How likely it strikes a matching request.
        seed: Seeds the draw.
        status: The HTTP status of STATUS, STATUS_AFTER_COMMIT and BATCH_STATUS.
        substatus: Its sub-status.
        retry_after_ms: The wait that the reply asks for.
        seconds: The length of a delay.
        page_size: The most items of a partial page, which may be 0.
        reset: Whether a dropped connection is reset (RST) instead of closed (FIN).
        struck: How often it has struck.
    """

    kind: FaultKind
    match: Callable[[CosmosRequest], bool] = _match_all
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
        self._random = random.Random(self.seed)

    def should_apply(self, request: CosmosRequest) -> bool:
        """Decides whether it strikes this request, and counts it."""
        if self.times is not None and self.applied >= self.times:
            return False
        if request.operation not in _ONLY.get(self.kind, (request.operation,)) or not self.match(request):
            return False
        if self._random.random() >= self.probability:
            return False
        self.applied += 1
        return True


class FaultInjector:
    """The faults of one server; tests add and clear them while it runs."""

    def __init__(self) -> None:
        self._faults: list[InjectedFault] = []
        self._lock = Lock()

    def add(self, *faults: InjectedFault) -> InjectedFault:
        """Adds faults and gives back the last; the first that strikes a request wins."""
        with self._lock:
            self._faults.extend(faults)
        return faults[-1]

    def clear(self) -> None:
        """Takes all faults away."""
        with self._lock:
            self._faults.clear()

    def select(self, request: CosmosRequest) -> InjectedFault | None:
        """Gives the fault that strikes a request, if any."""
        with self._lock:
            return next((fault for fault in self._faults if fault.should_apply(request)), None)


def random_faults(
    probability: float, seed: int, match: Callable[[CosmosRequest], bool] = _match_all, *, seconds: float = 0.02
) -> list[InjectedFault]:
    """Gives one fault of every kind that a sound client survives, each as likely as the others.

    Args:
        probability: How likely any of them strikes a matching request.
        seed: Seeds the draws.
        match: Which requests they may strike.
        seconds: The length of delays; longer than a client's patience makes outcomes unknown, and commits late.
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
        InjectedFault(FaultKind.DELAY, seconds=seconds),
        InjectedFault(FaultKind.PARTIAL_PAGE, page_size=1),
        InjectedFault(FaultKind.DELAY_AFTER_COMMIT, seconds=seconds),
        InjectedFault(FaultKind.PARTIAL_PAGE, page_size=0),
        InjectedFault(FaultKind.BATCH_STATUS, status=449, retry_after_ms=5),
    ]
    share = 1 - (1 - probability) ** (1 / len(shapes))
    for index, fault in enumerate(shapes):
        fault.match, fault.probability, fault._random = match, share, random.Random(seed + index)
    return shapes


def random_read_faults(
    probability: float, seed: int, match: Callable[[CosmosRequest], bool] = _match_all, *, seconds: float = 0.02
) -> list[InjectedFault]:
    """Gives the faults of :func:`chaos` that a read can meet: it has no condition that could fail."""
    every = random_faults(probability, seed, match, seconds=seconds)
    return [fault for fault in every if fault.status != HTTPStatus.PRECONDITION_FAILED]
