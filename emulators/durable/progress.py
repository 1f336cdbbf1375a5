"""Progress of an orchestration: its requested actions, task ids as the SDK assigns them, and running retries."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from emulators.durable.actions import Action


@dataclass(slots=True)
class ScheduledAction:
    """Action of an earlier turn, and the id of its task if it has one."""

    signature: str
    task: int | None


@dataclass(slots=True)
class RetryState:
    """Call with a retry policy.

    Attributes:
        action: the call.
        attempts: number of started attempts.
    """

    action: Action
    attempts: int


@dataclass(slots=True)
class OrchestrationProgress:
    """State of the engine in a replay; it assigns task ids in the same order as the SDK.

    Attributes:
        next_task: the id of the next task.
        asked: all requested actions, in order.
        running: running attempts by task id.
        waiting: retries that wait for a timer, by timer id.
        waits: number of open waits by event name.
        cancelled: ids of timers that the orchestrator cancelled.
    """

    next_task: int = 0
    asked: list[ScheduledAction] = field(default_factory=list)
    running: dict[int, RetryState] = field(default_factory=dict)
    waiting: dict[int, RetryState] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=list)

    def new_task(self) -> int:
        """Return the id of a new task."""
        self.next_task += 1
        return self.next_task - 1

    def dump(self) -> str:
        """Return the progress as JSON text."""
        return json.dumps(asdict(self), separators=(",", ":"))


def load(text: str) -> OrchestrationProgress:
    """Return the progress in a text of ``dump``; an empty object is the initial state."""
    members: dict[str, Any] = json.loads(text)
    return OrchestrationProgress(
        next_task=members.get("next_task", 0),
        asked=[ScheduledAction(**item) for item in members.get("asked", ())],
        running={int(task): RetryState(**item) for task, item in members.get("running", {}).items()},
        waiting={int(task): RetryState(**item) for task, item in members.get("waiting", {}).items()},
        waits=members.get("waits", {}),
        cancelled=members.get("cancelled", []),
    )
