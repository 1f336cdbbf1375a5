"""What is kept of an orchestration, and the messages that move it on."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class OrchestrationStatus(StrEnum):
    """Where an orchestration stands, by the names of the Durable Task extension."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"

    @property
    def ended(self) -> bool:
        """Return whether nothing more will happen."""
        return self in ENDED


ENDED = frozenset({OrchestrationStatus.COMPLETED, OrchestrationStatus.FAILED, OrchestrationStatus.TERMINATED})


class MessageKind(StrEnum):
    """What a message tells an orchestration."""

    START = "start"
    DONE = "done"
    """An activity or a sub-orchestration ended."""
    TIMER = "timer"
    RAISED = "raised"
    """An event from outside; it waits until the orchestrator waits for its name."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The orchestration that called this one, and as which of its tasks."""

    instance: str
    execution: str
    task: int


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An orchestration to be started.

    Attributes:
        instance: its id.
        execution: the id of this run; an instance that continues as new, or is restarted, gets another.
        name: the orchestrator's name.
        version: what the caller asked for, None for none.
        input: JSON text, None for none.
        parent: who called it, None when a client did.
    """

    instance: str
    execution: str
    name: str
    version: str | None
    input: str | None
    parent: Parent | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """An orchestration as it is kept; ``input``, ``output`` and ``custom_status`` are JSON texts."""

    start: NewInstance
    status: OrchestrationStatus
    output: str | None
    custom_status: str | None
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class OrchestrationMessage:
    """Something that happened to an orchestration, not yet part of its history."""

    number: int
    kind: MessageKind
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Activity:
    """An activity to be run; ``input`` is JSON text."""

    instance: str
    execution: str
    task: int
    name: str
    input: str


@dataclass(frozen=True, slots=True)
class PendingActivity:
    """An activity in the store."""

    number: int
    activity: Activity


@dataclass(frozen=True, slots=True)
class TurnInput:
    """What one turn of an orchestration starts from.

    Attributes:
        instance: the orchestration.
        history: its events so far, as JSON texts without ``IsPlayed``.
        progress: what the turns before left, as JSON text.
        messages: what this turn delivers.
    """

    instance: Instance
    history: list[str]
    progress: str
    messages: list[OrchestrationMessage]


def new_id() -> str:
    """Return a new id of an instance, or of a run of one."""
    return uuid.uuid4().hex
