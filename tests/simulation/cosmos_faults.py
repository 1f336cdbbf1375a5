"""Network faults between simulated processes and their Cosmos DB account."""

import random
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final, Self

from emulators.cosmos import CosmosRequest, FaultKind, InjectedFault
from emulators.cosmos.wire import ITEM_WRITES

_RATES: Final = (0.0, 0.0, 0.01, 0.05, 0.15)
_EXECUTED: Final = {"batch", "query", "read_feed", "read_item"} | ITEM_WRITES
_NOT_EXECUTED_STATUSES: Final = ((408, 0), (410, 1002), (410, 1007), (449, 0), (500, 0), (503, 0))
_UNKNOWN_STATUSES: Final = ((408, 0), (500, 0), (503, 0))
_LONGEST_RETRY_AFTER_MS: Final = 3_000


class NetworkFault(StrEnum):
    """Kind of network fault; a comment at each kind says what happens to the request."""

    REFUSED = "refused"  # no connection, so it is never sent
    LOST = "lost"  # it never arrives, and the connection closes
    SILENT = "silent"  # it never arrives, and the client notices nothing
    REPLY_LOST = "reply lost"  # it is executed, and the connection closes without a reply
    OVERTAKEN = "overtaken"  # the connection closes first, and it is executed seconds later
    REPLY_SILENT = "reply silent"  # it is executed, and the client waits in vain
    REPLY_CUT = "reply cut"  # it is executed, and the connection closes in the middle of the reply
    TWICE = "twice"  # it arrives twice, and the client gets the reply to the first
    STATUS_AFTER = "status after"  # it is executed, and the reply is an error
    SLOW = "slow"  # it takes seconds


_NETWORK_FAULTS: Final = {
    "lost": (NetworkFault.REFUSED, NetworkFault.LOST, NetworkFault.LOST, NetworkFault.SILENT),
    "reply_lost": (
        NetworkFault.REPLY_LOST,
        NetworkFault.REPLY_SILENT,
        NetworkFault.REPLY_CUT,
        NetworkFault.OVERTAKEN,
    ),
    "twice": (NetworkFault.TWICE,),
    "slow": (NetworkFault.SLOW,),
}


@dataclass(frozen=True)
class DrawnFault:
    """Random faults that affect one request.

    Attributes:
        network: fault of the network; None for none.
        injected: fault of the account itself; None for none.
    """

    network: NetworkFault | None = None
    injected: InjectedFault | None = None

    @property
    def name(self) -> str:
        """Name of the fault in the trace of the world."""
        injected = f"{self.injected.kind} {self.injected.status}" if self.injected else ""
        return " ".join(filter(None, [self.network or "", injected]))


NO_FAULT: Final = DrawnFault()


@dataclass
class CosmosFaults:
    """Probabilities of the network faults of a request.

    Attributes:
        lost: a request is lost, with or without an end of the connection.
        reply_lost: a request is executed, but its reply is lost.
        twice: a request arrives twice.
        slow: a request or its reply takes seconds.
        failed: the account replies that nothing was written, or that something was possibly written.
        throttled: the account replies that the request rate is too large.
        partial: a page of results is empty or has one result.
    """

    lost: float = 0
    reply_lost: float = 0
    twice: float = 0
    slow: float = 0
    failed: float = 0
    throttled: float = 0
    partial: float = 0

    @classmethod
    def draw(cls, source: random.Random) -> Self:
        """Return random probabilities of network faults for one simulated world."""
        return cls(**{field.name: source.choice(_RATES) for field in fields(cls)})

    def stop(self) -> None:
        """Set all probabilities to 0, so that unfinished work of the world can be completed."""
        for field in fields(self):
            setattr(self, field.name, 0.0)

    def draw_fault(self, source: random.Random, request: CosmosRequest) -> DrawnFault:
        """Draw the faults of one request; a request that opens the account can only be lost or slow."""
        number = source.random()
        for field in fields(self):
            rate = getattr(self, field.name)
            if number < rate:
                return _build_fault(field.name, source, request)
            number -= rate
        return NO_FAULT


def _build_fault(name: str, source: random.Random, request: CosmosRequest) -> DrawnFault:
    if name in _NETWORK_FAULTS:
        return DrawnFault(source.choice(_NETWORK_FAULTS[name]))
    if request.operation not in _EXECUTED:
        return NO_FAULT
    if name == "failed":
        return _build_failure(source)
    if name == "throttled":
        return DrawnFault(injected=_build_throttling(source, request))
    return DrawnFault(injected=InjectedFault(FaultKind.PARTIAL_PAGE, page_size=source.randint(0, 1)))


def _build_failure(source: random.Random) -> DrawnFault:
    if source.random() < 0.5:
        status, substatus = source.choice(_NOT_EXECUTED_STATUSES)
        return DrawnFault(injected=InjectedFault(FaultKind.STATUS, status=status, substatus=substatus))
    status, substatus = source.choice(_UNKNOWN_STATUSES)
    injected = InjectedFault(FaultKind.STATUS_AFTER_COMMIT, status=status, substatus=substatus)
    return DrawnFault(NetworkFault.STATUS_AFTER, injected)


def _build_throttling(source: random.Random, request: CosmosRequest) -> InjectedFault:
    wait = source.randint(0, _LONGEST_RETRY_AFTER_MS)
    if request.operation == "batch" and source.random() < 0.5:
        status = source.choice((429, 449))
        return InjectedFault(FaultKind.BATCH_STATUS, status=status, retry_after_ms=wait)
    return InjectedFault(FaultKind.STATUS, status=429, substatus=3200, retry_after_ms=wait)
