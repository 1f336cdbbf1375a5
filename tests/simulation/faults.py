"""Probabilities of the faults of one simulated world."""

import random
from dataclasses import dataclass, fields
from typing import Final, Self

from tests.simulation.scheduler import MICROSECONDS

_RATES: Final = (0.0, 0.0, 0.01, 0.05, 0.2)
"""Probabilities from which each kind draws; a world with few kinds reaches states that a world with all never sees."""

_PAUSE_RATE: Final = 0.1
_WORLDS_WITH_PAUSES: Final = 0.15


@dataclass
class Faults:
    """Probability of each kind of fault whenever the fault is possible.

    Attributes:
        request_lost: a request does not arrive.
        reply_lost: a request is processed, but its caller gets no reply.
        delivered_twice: a request arrives twice.
        slow: a request, a reply or a job takes seconds instead of milliseconds.
        busy: a file stays locked by another program until the timeout.
        full: the disk is full at a commit, which is rolled back.
        commit_lost: a commit succeeds, but reports a failure.
        crash: a process dies at a step or on either side of a job.
        clock_jump: the clocks of all hosts are set, by less than one hour.
        pause: a process is frozen for seconds, so that its leases can end; then it continues.
    """

    request_lost: float = 0
    reply_lost: float = 0
    delivered_twice: float = 0
    slow: float = 0
    busy: float = 0
    full: float = 0
    commit_lost: float = 0
    crash: float = 0
    clock_jump: float = 0
    pause: float = 0

    @classmethod
    def draw(cls, source: random.Random, seed: int) -> Self:
        """Return random probabilities of faults for one simulated world.

        Args:
            source: source of all decisions but that about pauses.
            seed: decides about pauses.
        """
        # A draw from the same source would change the schedules of all worlds, and of the seeds that once failed.
        drawn = {field.name: source.choice(_RATES) for field in fields(cls) if field.name != "pause"}
        drawn["pause"] = _PAUSE_RATE if random.Random(f"interruptions {seed}").random() < _WORLDS_WITH_PAUSES else 0.0
        drawn["crash"] /= 25
        drawn["clock_jump"] = min(drawn["clock_jump"], 0.05)
        return cls(**drawn)

    def stop(self) -> None:
        """Set all probabilities to 0, so that unfinished work of the world can be completed."""
        for field in fields(self):
            setattr(self, field.name, 0.0)


def draw_delay(source: random.Random, faults: Faults, usual_maximum: int) -> int:
    """Return a random duration in microseconds.

    Args:
        source: source of the decision.
        faults: faults of the world.
        usual_maximum: longest duration without a fault.
    """
    if source.random() < faults.slow / 4:
        return int(source.random() ** 2 * 20 * MICROSECONDS)
    return int(source.random() * usual_maximum)
