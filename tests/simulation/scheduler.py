"""Scheduler and virtual clock of a simulated world; one seed determines the order of steps."""

import heapq
import itertools
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.simulation.event_loop import SimulatedLoop

MICROSECONDS: Final = 1_000_000
_LONGEST_STEP_BITS: Final = 4


class Scheduler:
    """Scheduler that runs one step at a time: a callback of an event loop, or an event that is due.

    Each loop runs its callbacks in the order in which they were scheduled, as asyncio documents. The seed decides which
    loop runs next, and how long everything else takes.

    Args:
        random_source: source of all decisions.

    Attributes:
        random: source of all decisions.
        now: time since the start in microseconds.
        steps: number of steps so far.
        current: loop whose callback or job runs at the moment.
        last: loop that ran a callback in the last step; None if no loop did.
    """

    def __init__(self, random_source: random.Random) -> None:
        self.random = random_source
        self.now = 0
        self.steps = 0
        self.current: SimulatedLoop | None = None
        self.last: SimulatedLoop | None = None
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._awake: list[SimulatedLoop] = []

    def call_after(self, delay: int, callback: Callable[[], object]) -> None:
        """Call a function after a delay in microseconds."""
        heapq.heappush(self._events, (self.now + max(delay, 0), next(self._numbers), callback))

    def add_ready_loop(self, loop: "SimulatedLoop") -> None:
        """Add a loop with queued callbacks to the loops from which the scheduler chooses."""
        if loop not in self._awake:
            self._awake.append(loop)

    def remove_loop(self, loop: "SimulatedLoop") -> None:
        """Remove the loop of a crashed process, so that its callbacks never run."""
        if loop in self._awake:
            self._awake.remove(loop)

    def run_step(self) -> bool:
        """Run one step of the world; return False if no step is left."""
        self.steps += 1
        self.last = None
        awake = self._awake
        if not awake:
            if not self._events:
                return False
            self.now = max(self.now, self._events[0][0])
        if self._events and self._events[0][0] <= self.now:
            self._run_due_events()
        if awake:
            place = int(self.random.random() * len(awake)) if len(awake) > 1 else 0
            loop = awake[place]
            self.last = loop
            loop.run_next_callback()
            # The loop may have died or left the list during the step.
            if not loop.ready and loop in awake:
                awake.remove(loop)
            self.now += self.random.getrandbits(_LONGEST_STEP_BITS)
        return True

    def _run_due_events(self) -> None:
        while self._events and self._events[0][0] <= self.now:
            _, _, callback = heapq.heappop(self._events)
            callback()
