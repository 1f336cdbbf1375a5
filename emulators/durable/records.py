"""Data classes for orchestrations: instances, progress, activities, and the messages that an orchestration receives."""

import json
import uuid
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from emulators.durable.actions import Action

type JsonText = str
"""JSON document as text."""

type TaskId = int
"""Id of an activity call, a sub-orchestration call or a timer, unique in its orchestration."""


@dataclass(slots=True)
class ScheduledAction:
    """Action that an orchestrator requested in an earlier replay; ``task`` is its task id, None if it has no task."""

    signature: str
    task: int | None


@dataclass(slots=True)
class RetryState:
    """State of a call of an activity or sub-orchestration that has a retry policy.

    Attributes:
        action: action of the orchestrator that requested the call.
        attempts: number of attempts that have been started.
    """

    action: Action
    attempts: int


@dataclass(slots=True)
class OrchestrationProgress:
    """Progress of an orchestration after its last turn (replay of the orchestrator function).

    Task ids are assigned in the same order as in the SDK.

    Attributes:
        next_task: id of the next task.
        asked: all actions that the orchestrator has requested, in order. The attribute name is part of the stored
            format.
        running: calls in progress that have a retry policy, by task id.
        waiting: failed calls that will be retried, by id of the timer that starts the retry.
        waits: number of external events for which the orchestrator waits, by event name.
        cancelled: ids of the timers that the orchestrator has cancelled.
    """

    next_task: int = 0
    asked: list[ScheduledAction] = field(default_factory=list)
    running: dict[int, RetryState] = field(default_factory=dict)
    waiting: dict[int, RetryState] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=list)

    def assign_task_id(self) -> TaskId:
        """Assign the next task id of the orchestration, and return the id."""
        self.next_task += 1
        return self.next_task - 1

    def to_json(self) -> JsonText:
        """Return the progress as JSON text, for the SQLite file."""
        return json.dumps(asdict(self), separators=(",", ":"))


def parse_progress(text: JsonText) -> OrchestrationProgress:
    """Parse the progress of an orchestration from JSON text; ``{}`` is the progress of a new orchestration."""
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
    """Runtime status of an orchestration instance, with the names of the Durable Task extension."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"

    @property
    def has_ended(self) -> bool:
        """True if the orchestration is completed, failed or terminated."""
        return self in ENDED


ENDED = frozenset({OrchestrationStatus.COMPLETED, OrchestrationStatus.FAILED, OrchestrationStatus.TERMINATED})


class MessageKind(StrEnum):
    """Kinds of messages that the store delivers to an orchestration."""

    START = "start"
    DONE = "done"
    """An activity or a sub-orchestration ended."""
    TIMER = "timer"
    RAISED = "raised"
    """An external event, stored until the orchestrator waits for its name."""


@dataclass(frozen=True, slots=True)
class Parent:
    """Caller of a sub-orchestration: ids of the calling instance, of its run, and of the task that made the call."""

    instance: str
    execution: str
    task: int


@dataclass(frozen=True, slots=True)
class NewInstance:
    """Data with which an orchestration instance is started.

    Attributes:
        instance: id of the instance.
        execution: id of this run of the instance; a restart or continue-as-new assigns a new id.
        name: name of the orchestrator function.
        version: requested version of the orchestration; None for the default.
        input: input of the orchestrator as JSON text; None for no input.
        parent: caller of a sub-orchestration; None if a client started the instance.
    """

    instance: str
    execution: str
    name: str
    version: str | None
    input: str | None
    parent: Parent | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """Stored orchestration instance; ``input``, ``output`` and ``custom_status`` are JSON texts."""

    start: NewInstance
    status: OrchestrationStatus
    output: str | None
    custom_status: str | None
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class OrchestrationMessage:
    """Undelivered message to an orchestration instance, which is delivered by adding its event to the history.

    Attributes:
        number: number of the message in the SQLite file.
        kind: kind of the message, for example the result of an activity.
        event: history event, in the format of the SDK; empty for a message that starts the instance.
    """

    number: int
    kind: MessageKind
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Activity:
    """Call of an activity that an orchestration scheduled; ``input`` is JSON text."""

    instance: str
    execution: str
    task: int
    name: str
    input: str


@dataclass(frozen=True, slots=True)
class PendingActivity:
    """Stored call of an activity that has no result yet; ``number`` identifies the call in the SQLite file."""

    number: int
    activity: Activity


@dataclass(frozen=True, slots=True)
class TurnInput:
    """Input of one turn of an orchestration (one replay of the orchestrator function).

    Attributes:
        instance: the orchestration instance.
        history: events of earlier turns, as JSON texts without the property ``IsPlayed``.
        progress: stored progress of the orchestration, as JSON text.
        messages: new messages that this turn delivers.
    """

    instance: Instance
    history: list[str]
    progress: str
    messages: list[OrchestrationMessage]


def create_random_id() -> str:
    """Return a new random id for an orchestration instance or one of its runs."""
    return uuid.uuid4().hex
