"""Records of orchestrations, their progress, activities and messages."""

import json
import uuid
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
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


def load_progress(text: str) -> OrchestrationProgress:
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


class OrchestrationStatus(StrEnum):
    """Runtime status of an orchestration, with the names of the Durable Task extension."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"

    @property
    def ended(self) -> bool:
        """Whether the orchestration has ended."""
        return self in ENDED


ENDED = frozenset({OrchestrationStatus.COMPLETED, OrchestrationStatus.FAILED, OrchestrationStatus.TERMINATED})


class MessageKind(StrEnum):
    """Kinds of messages to an orchestration."""

    START = "start"
    DONE = "done"
    """An activity or a sub-orchestration ended."""
    TIMER = "timer"
    RAISED = "raised"
    """An external event, stored until the orchestrator waits for its name."""


@dataclass(frozen=True, slots=True)
class Parent:
    """Calling orchestration, and the task id of the call."""

    instance: str
    execution: str
    task: int


@dataclass(frozen=True, slots=True)
class NewInstance:
    """Orchestration to start.

    Attributes:
        instance: its id.
        execution: the id of this run; a restart or continue-as-new assigns a new one.
        name: the orchestrator's name.
        version: the requested version, None for the default.
        input: JSON text, None for none.
        parent: the calling orchestration, None if a client started it.
    """

    instance: str
    execution: str
    name: str
    version: str | None
    input: str | None
    parent: Parent | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """Stored orchestration; ``input``, ``output`` and ``custom_status`` are JSON texts."""

    start: NewInstance
    status: OrchestrationStatus
    output: str | None
    custom_status: str | None
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class OrchestrationMessage:
    """Message to an orchestration that is not yet part of its history."""

    number: int
    kind: MessageKind
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Activity:
    """Activity to run; ``input`` is JSON text."""

    instance: str
    execution: str
    task: int
    name: str
    input: str


@dataclass(frozen=True, slots=True)
class PendingActivity:
    """Activity in the store."""

    number: int
    activity: Activity


@dataclass(frozen=True, slots=True)
class TurnInput:
    """Input of one turn of an orchestration.

    Attributes:
        instance: the orchestration.
        history: its events so far, as JSON texts without ``IsPlayed``.
        progress: stored progress, as JSON text.
        messages: the messages that this turn delivers.
    """

    instance: Instance
    history: list[str]
    progress: str
    messages: list[OrchestrationMessage]


def new_id() -> str:
    """Return a new id of an instance, or of a run of one."""
    return uuid.uuid4().hex
