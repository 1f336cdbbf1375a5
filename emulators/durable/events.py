"""Events of a history in the format of the SDK, and the documents that show an instance and its history."""

import json
from collections.abc import Iterable
from datetime import datetime
from enum import IntEnum
from typing import Any

from emulators.durable.records import Instance, NewInstance
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


_NAMES = {
    EventType.EXECUTION_STARTED: "ExecutionStarted",
    EventType.EXECUTION_COMPLETED: "ExecutionCompleted",
    EventType.EXECUTION_TERMINATED: "ExecutionTerminated",
    EventType.TASK_COMPLETED: "TaskCompleted",
    EventType.TASK_FAILED: "TaskFailed",
    EventType.SUB_ORCHESTRATION_COMPLETED: "SubOrchestrationInstanceCompleted",
    EventType.SUB_ORCHESTRATION_FAILED: "SubOrchestrationInstanceFailed",
    EventType.TIMER_CREATED: "TimerCreated",
    EventType.TIMER_FIRED: "TimerFired",
    EventType.EVENT_RAISED: "EventRaised",
    EventType.EXECUTION_SUSPENDED: "ExecutionSuspended",
    EventType.EXECUTION_RESUMED: "ExecutionResumed",
}
_SCHEDULING = frozenset({EventType.TASK_SCHEDULED, EventType.SUB_ORCHESTRATION_CREATED})
_COPIED = ("Reason", "Details", "OrchestrationStatus", "FireAt")
_OUTPUTS = ("Result", "Input")


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


def status_document(
    instance: Instance, *, show_input: bool, history: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the status document; times have whole seconds, as in the extension."""
    shown = {
        "name": instance.start.name,
        "instanceId": instance.start.instance,
        "runtimeStatus": str(instance.status),
        "input": _value(instance.start.input) if show_input else None,
        "customStatus": _value(instance.custom_status),
        "output": _value(instance.output),
        "createdTime": _to_second(instance.created),
        "lastUpdatedTime": _to_second(instance.updated),
    }
    return shown if history is None else shown | {"historyEvents": history}


def history_document(texts: Iterable[str], *, show_output: bool) -> list[dict[str, Any]]:
    """Return the history for a status document, without internal events."""
    scheduled: dict[int, dict[str, Any]] = {}
    shown: list[dict[str, Any]] = []
    for event in map(json.loads, texts):
        kind = EventType(event["EventType"])
        if kind in _SCHEDULING:
            scheduled[event["EventId"]] = event
        elif kind in _NAMES:
            shown.append(
                _history_entry(kind, event, scheduled.get(event.get("TaskScheduledId", -1)), show_output=show_output)
            )
    return shown


def _history_entry(
    kind: EventType, event: dict[str, Any], scheduled: dict[str, Any] | None, *, show_output: bool
) -> dict[str, Any]:
    entry: dict[str, Any] = {"EventType": _NAMES[kind]}
    if kind is EventType.EXECUTION_STARTED:
        entry["FunctionName"] = event["Name"]
    elif "Name" in event:
        entry["Name"] = event["Name"]
    if scheduled is not None:
        entry |= {"FunctionName": scheduled["Name"], "ScheduledTime": scheduled["Timestamp"]}
    entry |= {name: event[name] for name in _COPIED if name in event}
    if show_output:
        entry |= {name: _value(event[name]) for name in _OUTPUTS if name in event}
    return entry | {"Timestamp": event["Timestamp"]}


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _to_second(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
