"""Records of orchestrations, activities and messages."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


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
