"""History events in the format that the Durable Functions SDKs read (DurableTask.Core.History)."""

from datetime import datetime
from enum import IntEnum
from typing import Any

from emulators.durable.records import NewInstance
from shared.timestamps import rfc3339

type Event = dict[str, Any]

NO_ID = -1


class EventType(IntEnum):
    """Types of the history events that this engine writes."""

    EXECUTION_STARTED = 0
    EXECUTION_COMPLETED = 1
    EXECUTION_TERMINATED = 3
    TASK_SCHEDULED = 4
    TASK_COMPLETED = 5
    TASK_FAILED = 6
    SUB_ORCHESTRATION_CREATED = 7
    SUB_ORCHESTRATION_COMPLETED = 8
    SUB_ORCHESTRATION_FAILED = 9
    TIMER_CREATED = 10
    TIMER_FIRED = 11
    ORCHESTRATOR_STARTED = 12
    ORCHESTRATOR_COMPLETED = 13
    EVENT_RAISED = 15
    EXECUTION_SUSPENDED = 19
    EXECUTION_RESUMED = 20


def event(kind: EventType, at: datetime, number: int = NO_ID, **members: Any) -> Event:
    """Return an event; ``number`` is the task id if the event schedules a task."""
    return {"EventType": int(kind), "EventId": number, "Timestamp": rfc3339(at), **members}


def execution_started(start: NewInstance, at: datetime) -> Event:
    """Return the second event of every history."""
    parent = start.parent and {
        "Name": None,
        "TaskScheduleId": start.parent.task,
        "OrchestrationInstance": {"InstanceId": start.parent.instance, "ExecutionId": start.parent.execution},
    }
    return event(
        EventType.EXECUTION_STARTED,
        at,
        Name=start.name,
        Version=start.version,
        Input=start.input,
        OrchestrationInstance={"InstanceId": start.instance, "ExecutionId": start.execution},
        ParentInstance=parent,
    )


def task_completed(task: int, result: str | None, at: datetime) -> Event:
    """Return the event of a completed activity; the result is JSON text."""
    return event(EventType.TASK_COMPLETED, at, TaskScheduledId=task, Result=result)


def task_failed(task: int, reason: str, details: str, at: datetime) -> Event:
    """Return the event of a failed activity."""
    return event(EventType.TASK_FAILED, at, TaskScheduledId=task, Reason=reason, Details=details)


def sub_orchestration_completed(task: int, result: str | None, at: datetime) -> Event:
    """Return the event of a completed sub-orchestration; the result is JSON text."""
    return event(EventType.SUB_ORCHESTRATION_COMPLETED, at, TaskScheduledId=task, Result=result)


def sub_orchestration_failed(task: int, reason: str, at: datetime) -> Event:
    """Return the event of a failed sub-orchestration."""
    return event(EventType.SUB_ORCHESTRATION_FAILED, at, TaskScheduledId=task, Reason=reason, Details="")


def timer_fired(task: int, due: datetime) -> Event:
    """Return the event of a fired timer, with its due time."""
    return event(EventType.TIMER_FIRED, due, TimerId=task, FireAt=rfc3339(due))


def event_raised(name: str, data: str | None, at: datetime) -> Event:
    """Return an external event; its data is JSON text."""
    return event(EventType.EVENT_RAISED, at, Name=name, Input=data)
