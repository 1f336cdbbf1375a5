"""What an orchestration has asked for so far: task ids as the SDK gives them, and retries under way."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from emulators.durable.actions import Action


@dataclass(slots=True)
class ScheduledAction:
    """An action seen in an earlier turn, and the id of its task where it has one."""

    signature: str
    task: int | None


@dataclass(slots=True)
class RetryState:
    """A call under a retry policy.

    Attributes:
        action: the call.
        attempts: how many were begun.
    """

    action: Action
    attempts: int


@dataclass(slots=True)
class OrchestrationProgress:
    """The engine's side of a replay; it gives out ids exactly when the SDK does.

    Attributes:
        next_task: the id of the next task.
        asked: every action so far, in order.
        running: attempts under way by their task's id.
        waiting: retries that wait for their timer, by the timer's id.
        waits: by event name, how many waits are open.
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
        """Return it as JSON text."""
        return json.dumps(asdict(self), separators=(",", ":"))


def load(text: str) -> OrchestrationProgress:
    """Return what ``dump`` made a text of; an empty object is the beginning."""
    members: dict[str, Any] = json.loads(text)
    return OrchestrationProgress(
        next_task=members.get("next_task", 0),
        asked=[ScheduledAction(**item) for item in members.get("asked", ())],
        running={int(task): RetryState(**item) for task, item in members.get("running", {}).items()},
        waiting={int(task): RetryState(**item) for task, item in members.get("waiting", {}).items()},
        waits=members.get("waits", {}),
        cancelled=members.get("cancelled", []),
    )
