"""Tests of history events and of the status of an instance."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from emulators.durable import events
from emulators.durable.events import EventType
from emulators.durable.records import Instance, NewInstance, OrchestrationStatus, Parent

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


def _build_start_events(parent: Parent | None = None) -> NewInstance:
    return NewInstance("i1", "run1", "Main", None, '{"a": 1}', parent)


def _summarise_history(*history: events.Event, show_output: bool = True) -> list[dict[str, Any]]:
    return events.build_history_document(map(json.dumps, history), show_output=show_output)


def test_the_start_event_of_a_sub_orchestration_names_the_caller() -> None:
    """The start event of a sub-orchestration names the caller; an orchestration started by a client has no caller."""
    called = events.build_execution_started(_build_start_events(Parent("p1", "prun", 7)), AT)
    assert called["ParentInstance"]["TaskScheduleId"] == 7
    assert called["ParentInstance"]["OrchestrationInstance"] == {"InstanceId": "p1", "ExecutionId": "prun"}
    assert called["OrchestrationInstance"] == {"InstanceId": "i1", "ExecutionId": "run1"}
    assert events.build_execution_started(_build_start_events(), AT)["ParentInstance"] is None


def test_only_scheduling_events_have_the_task_id_as_number() -> None:
    """A history event that schedules a task has the task id as its number; all other history events have -1."""
    scheduled = events.build_event(EventType.TASK_SCHEDULED, AT, 4, Name="Work")
    assert (scheduled["EventId"], scheduled["EventType"], scheduled["Name"]) == (4, 4, "Work")
    assert events.build_task_completed(4, "1", AT)["EventId"] == events.NO_ID == -1


def test_a_timer_fires_at_its_due_time() -> None:
    """The event of a timer has the due time, even if the timer fires later."""
    fired = events.build_timer_fired(3, AT)
    assert fired["Timestamp"] == fired["FireAt"]
    assert fired["TimerId"] == 3


def test_an_orchestration_status_has_json_values_and_whole_seconds() -> None:
    """The status has parsed input, output and custom status, and times in whole seconds."""
    instance = Instance(
        _build_start_events(), OrchestrationStatus.COMPLETED, "[1]", '"half"', AT, AT + timedelta(seconds=1)
    )
    shown = events.build_status_document(instance, show_input=True)
    assert (shown["input"], shown["output"], shown["customStatus"]) == ({"a": 1}, [1], "half")
    assert (shown["runtimeStatus"], shown["name"], shown["instanceId"]) == ("Completed", "Main", "i1")
    assert (shown["createdTime"], shown["lastUpdatedTime"]) == ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z")
    assert "historyEvents" not in shown


def test_a_status_contains_input_and_history_only_on_request() -> None:
    """The status has the input and the history only if the client requests them."""
    instance = Instance(_build_start_events(), OrchestrationStatus.RUNNING, None, None, AT, AT)
    shown = events.build_status_document(instance, show_input=False, history=[])
    assert (shown["input"], shown["output"], shown["historyEvents"]) == (None, None, [])


def test_a_history_entry_names_the_function_of_the_task() -> None:
    """The history has one entry per task: the result, with the name and start time of the function."""
    shown = _summarise_history(
        events.build_event(EventType.ORCHESTRATOR_STARTED, AT),
        events.build_event(EventType.TASK_SCHEDULED, AT, 0, Name="Work"),
        events.build_task_failed(0, "bad", "trace", AT + timedelta(seconds=9)),
    )
    [entry] = shown
    assert (entry["EventType"], entry["FunctionName"]) == ("TaskFailed", "Work")
    assert (entry["Reason"], entry["Details"]) == ("bad", "trace")
    assert entry["ScheduledTime"] < entry["Timestamp"]


def test_a_history_contains_results_only_on_request() -> None:
    """The history has results and inputs, as parsed JSON, only if the client requests them."""
    history = [
        events.build_execution_started(_build_start_events(), AT),
        events.build_event_raised("go", '{"b": 2}', AT),
        events.build_sub_orchestration_completed(0, "null", AT),
    ]
    started, raised, completed = _summarise_history(*history)
    assert (started["FunctionName"], started["Input"]) == ("Main", {"a": 1})
    assert (raised["Name"], raised["Input"]) == ("go", {"b": 2})
    assert completed["Result"] is None
    assert all(
        "Input" not in entry and "Result" not in entry for entry in _summarise_history(*history, show_output=False)
    )
