"""Events in the history of an orchestration, and the JSON status of an instance, in the formats of the SDK."""

import json
from collections.abc import Iterable
from datetime import datetime
from enum import IntEnum
from typing import Any

from emulators.durable.records import Instance, JsonText, NewInstance, TaskId
from shared.timestamps import format_rfc3339

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


def build_event(kind: EventType, at: datetime, event_id: int = NO_ID, **members: Any) -> Event:
    """Build a history event.

    Args:
        kind: type of the event.
        at: time of the event.
        event_id: id of the task that the event schedules; NO_ID for an event that schedules none.
        members: further JSON properties of the event.
    """
    return {"EventType": int(kind), "EventId": event_id, "Timestamp": format_rfc3339(at), **members}


def build_execution_started(new_instance: NewInstance, at: datetime) -> Event:
    """Build the event ExecutionStarted, which is the second event in the history of every orchestration."""
    parent = new_instance.parent and {
        "Name": None,
        "TaskScheduleId": new_instance.parent.task,
        "OrchestrationInstance": {
            "InstanceId": new_instance.parent.instance,
            "ExecutionId": new_instance.parent.execution,
        },
    }
    return build_event(
        EventType.EXECUTION_STARTED,
        at,
        Name=new_instance.name,
        Version=new_instance.version,
        Input=new_instance.input,
        OrchestrationInstance={"InstanceId": new_instance.instance, "ExecutionId": new_instance.execution},
        ParentInstance=parent,
    )


def build_task_completed(task_id: TaskId, result_json: JsonText | None, at: datetime) -> Event:
    """Build the history event of a completed activity."""
    return build_event(EventType.TASK_COMPLETED, at, TaskScheduledId=task_id, Result=result_json)


def build_task_failed(task_id: TaskId, reason: str, stack_trace: str, at: datetime) -> Event:
    """Build the history event of a failed activity."""
    return build_event(EventType.TASK_FAILED, at, TaskScheduledId=task_id, Reason=reason, Details=stack_trace)


def build_sub_orchestration_completed(task_id: TaskId, result_json: JsonText | None, at: datetime) -> Event:
    """Build the history event of a completed sub-orchestration."""
    return build_event(EventType.SUB_ORCHESTRATION_COMPLETED, at, TaskScheduledId=task_id, Result=result_json)


def build_sub_orchestration_failed(task_id: TaskId, reason: str, at: datetime) -> Event:
    """Build the history event of a failed sub-orchestration."""
    return build_event(EventType.SUB_ORCHESTRATION_FAILED, at, TaskScheduledId=task_id, Reason=reason, Details="")


def build_timer_fired(task_id: TaskId, due: datetime) -> Event:
    """Build the history event of a timer that reached its due time."""
    return build_event(EventType.TIMER_FIRED, due, TimerId=task_id, FireAt=format_rfc3339(due))


def build_event_raised(name: str, data_json: JsonText | None, at: datetime) -> Event:
    """Build the history event of an external event."""
    return build_event(EventType.EVENT_RAISED, at, Name=name, Input=data_json)


def build_status_document(
    instance: Instance, *, show_input: bool, history: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Build the JSON status of an orchestration instance.

    Times have no fractional seconds, as in the real extension.

    Args:
        instance: the stored instance.
        show_input: whether the status contains the input of the orchestrator.
        history: result of :func:`build_history_document`; None for a status without history.
    """
    shown = {
        "name": instance.start.name,
        "instanceId": instance.start.instance,
        "runtimeStatus": str(instance.status),
        "input": _parse_optional_json_text(instance.start.input) if show_input else None,
        "customStatus": _parse_optional_json_text(instance.custom_status),
        "output": _parse_optional_json_text(instance.output),
        "createdTime": _format_instant_without_fraction(instance.created),
        "lastUpdatedTime": _format_instant_without_fraction(instance.updated),
    }
    return shown if history is None else shown | {"historyEvents": history}


def build_history_document(stored_events: Iterable[JsonText], *, show_output: bool) -> list[dict[str, Any]]:
    """Build the list of history events in the JSON status of an instance, without the events that only the SDK needs.

    Args:
        stored_events: stored history events, oldest first.
        show_output: whether the list contains the results of tasks and the data of events.
    """
    scheduled: dict[int, dict[str, Any]] = {}
    shown: list[dict[str, Any]] = []
    for event in map(json.loads, stored_events):
        kind = EventType(event["EventType"])
        if kind in _SCHEDULING:
            scheduled[event["EventId"]] = event
        elif kind in _NAMES:
            shown.append(
                _build_history_entry(
                    kind, event, scheduled.get(event.get("TaskScheduledId", -1)), show_output=show_output
                )
            )
    return shown


def _build_history_entry(
    kind: EventType, event: dict[str, Any], scheduling_event: dict[str, Any] | None, *, show_output: bool
) -> dict[str, Any]:
    """Build the entry for one event in the history of an instance's JSON status.

    ``scheduling_event`` is the event that scheduled a completed or failed task; None for other events.
    """
    entry: dict[str, Any] = {"EventType": _NAMES[kind]}
    if kind is EventType.EXECUTION_STARTED:
        entry["FunctionName"] = event["Name"]
    elif "Name" in event:
        entry["Name"] = event["Name"]
    if scheduling_event is not None:
        entry |= {"FunctionName": scheduling_event["Name"], "ScheduledTime": scheduling_event["Timestamp"]}
    entry |= {name: event[name] for name in _COPIED if name in event}
    if show_output:
        entry |= {name: _parse_optional_json_text(event[name]) for name in _OUTPUTS if name in event}
    return entry | {"Timestamp": event["Timestamp"]}


def _parse_optional_json_text(text: JsonText | None) -> Any:
    return None if text is None else json.loads(text)


def _format_instant_without_fraction(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
