"""Faults that tests inject: what goes wrong, for which requests, how often."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from threading import Lock

from emulators.cosmos.wire import Request


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


def _every(_: Request) -> bool:
    return True


@dataclass
class Fault:
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
    match: Callable[[Request], bool] = _every
    times: int | None = None
    probability: float = 1.0
    seed: int = 0
    status: int = 503
    substatus: int = 0
    retry_after_ms: int | None = None
    seconds: float = 0.0
    page_size: int = 1
    reset: bool = False
    struck: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def strikes(self, request: Request) -> bool:
        """Decides whether it strikes this request, and counts it."""
        if self.times is not None and self.struck >= self.times:
            return False
        if request.operation not in _ONLY.get(self.kind, (request.operation,)) or not self.match(request):
            return False
        if self._random.random() >= self.probability:
            return False
        self.struck += 1
        return True


class Faults:
    """The faults of one server; tests add and clear them while it runs."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = Lock()

    def add(self, *faults: Fault) -> Fault:
        """Adds faults and gives back the last; the first that strikes a request wins."""
        with self._lock:
            self._faults.extend(faults)
        return faults[-1]

    def clear(self) -> None:
        """Takes all faults away."""
        with self._lock:
            self._faults.clear()

    def strike(self, request: Request) -> Fault | None:
        """Gives the fault that strikes a request, if any."""
        with self._lock:
            return next((fault for fault in self._faults if fault.strikes(request)), None)


def chaos(
    probability: float, seed: int, match: Callable[[Request], bool] = _every, *, seconds: float = 0.02
) -> list[Fault]:
    """Gives one fault of every kind that a sound client survives, each as likely as the others.

    Args:
        probability: How likely any of them strikes a matching request.
        seed: Seeds the draws.
        match: Which requests they may strike.
        seconds: The length of delays; longer than a client's patience makes outcomes unknown, and commits late.
    """
    shapes: list[Fault] = [
        Fault(FaultKind.DROP_BEFORE_COMMIT),
        Fault(FaultKind.DROP_AFTER_COMMIT),
        Fault(FaultKind.DROP_AFTER_COMMIT, reset=True),
        Fault(FaultKind.DROP_IN_REPLY),
        Fault(FaultKind.STATUS, status=408),
        Fault(FaultKind.STATUS_AFTER_COMMIT, status=408),
        Fault(FaultKind.STATUS, status=410, substatus=1002),
        Fault(FaultKind.STATUS, status=410, substatus=1007),
        Fault(FaultKind.STATUS, status=412),
        Fault(FaultKind.STATUS, status=429, substatus=3200, retry_after_ms=5),
        Fault(FaultKind.BATCH_STATUS, status=429, retry_after_ms=5),
        Fault(FaultKind.STATUS, status=449),
        Fault(FaultKind.STATUS, status=500),
        Fault(FaultKind.STATUS_AFTER_COMMIT, status=500),
        Fault(FaultKind.STATUS, status=503),
        Fault(FaultKind.STATUS_AFTER_COMMIT, status=503),
        Fault(FaultKind.DELAY, seconds=seconds),
        Fault(FaultKind.PARTIAL_PAGE, page_size=1),
        Fault(FaultKind.DELAY_AFTER_COMMIT, seconds=seconds),
        Fault(FaultKind.PARTIAL_PAGE, page_size=0),
        Fault(FaultKind.BATCH_STATUS, status=449, retry_after_ms=5),
    ]
    share = 1 - (1 - probability) ** (1 / len(shapes))
    for index, fault in enumerate(shapes):
        fault.match, fault.probability, fault._random = match, share, random.Random(seed + index)
    return shapes


def read_chaos(
    probability: float, seed: int, match: Callable[[Request], bool] = _every, *, seconds: float = 0.02
) -> list[Fault]:
    """Gives the faults of :func:`chaos` that a read can meet: it has no condition that could fail."""
    every = chaos(probability, seed, match, seconds=seconds)
    return [fault for fault in every if fault.status != HTTPStatus.PRECONDITION_FAILED]
