"""Status documents of orchestrations in the HTTP API."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from emulators.durable.events import EventType
from emulators.durable.records import Instance

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
