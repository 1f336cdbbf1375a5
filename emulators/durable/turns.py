"""One turn of an orchestration: call the orchestrator function with its history, and schedule the requested tasks."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from emulators.durable import actions, events, records
from emulators.durable.actions import Action, ActionType
from emulators.durable.events import Event, EventType
from emulators.durable.records import (
    Activity,
    JsonText,
    MessageKind,
    NewInstance,
    OrchestrationMessage,
    OrchestrationProgress,
    OrchestrationStatus,
    Parent,
    RetryState,
    ScheduledAction,
    TaskId,
    TurnInput,
)
from shared.timestamps import format_rfc3339, parse_rfc3339

MAX_HISTORY = 50_000
"""Maximum number of events in a history; the limit exists because each turn replays all events."""

_STATE_MARK = "\n\n$OutOfProcData$:"
_SCHEMA_2, _SCHEMA_3 = 1, 2


class OrchestratorFailed(Exception):  # noqa: N818  an event in the app's life, not an error of the host
    """An orchestrator function raised an exception.

    The message is the text of the worker library. At the end, it can contain the state of the orchestrator as JSON.
    """


type Orchestrate = Callable[[str, str], Awaitable[str]]
"""Calls an orchestrator by name with its context as JSON text and returns its state as JSON text."""


@dataclass(frozen=True, slots=True)
class FunctionNames:
    """Names of the functions that an orchestrator may call.

    Attributes:
        activities: names of the app's activities.
        orchestrators: names of the app's orchestrators.
        version: version of each orchestration that is started without a version.
    """

    activities: frozenset[str]
    orchestrators: frozenset[str]
    version: str | None = None


@dataclass(slots=True)
class Turn:
    """Result of one turn of an orchestration, which is stored in one transaction.

    Attributes:
        history: new history events, as JSON texts.
        progress: progress of the orchestration after the turn.
        status: status of the orchestration after the turn.
        output: result of the orchestration as JSON text; None for no result.
        custom_status: status that the orchestrator set, as JSON text; None for no custom status.
        activities: activities to run.
        timers: id and due time of each timer to start.
        children: sub-orchestrations to start.
        cancelled: ids of the timers to cancel.
        continue_with: input of the next run as JSON text; None unless the orchestration continues as new.
    """

    history: list[str]
    progress: OrchestrationProgress
    status: OrchestrationStatus = OrchestrationStatus.RUNNING
    output: str | None = None
    custom_status: str | None = None
    activities: list[Activity] = field(default_factory=list)
    timers: list[tuple[int, datetime]] = field(default_factory=list)
    children: list[NewInstance] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    continue_with: str | None = None


async def run_turn(
    turn_input: TurnInput, run_orchestrator: Orchestrate, function_names: FunctionNames, now: datetime
) -> Turn:
    """Call an orchestrator with its history and new messages; return the tasks that it requests, or its result.

    Args:
        turn_input: the orchestration instance, its history and the new messages.
        run_orchestrator: function that calls the orchestrator.
        function_names: names of the activities and orchestrators of the app.
        now: time that the orchestrator receives as the current time.
    """
    return await _TurnRunner(turn_input, function_names, now).run_turn(run_orchestrator)


class _OrchestratorState(NamedTuple):
    """State of an orchestrator after a replay: its actions and result as JSON object, and its error message if any."""

    members: Mapping[str, Any]
    error_message: str | None


class _TurnRunner:
    """Runs one turn: delivers the messages, calls the orchestrator once, and collects the changes to store."""

    def __init__(self, turn_input: TurnInput, known_functions: FunctionNames, now: datetime) -> None:
        self._work = turn_input
        self._start = turn_input.instance.start
        self._known = known_functions
        self._now = now
        self._progress = records.parse_progress(turn_input.progress)
        self._new: list[Event] = []
        self._turn = Turn([], self._progress)

    async def run_turn(self, run_orchestrator: Orchestrate) -> Turn:
        if len(self._work.history) > MAX_HISTORY:
            self._record_failure(
                f"the history has more than {MAX_HISTORY} events; call continue_as_new in the orchestrator"
            )
            return self._build_turn()
        try:
            self._deliver_messages()
            self._apply_orchestrator_state(await self._call_orchestrator_and_get_state(run_orchestrator))
        except OrchestratorFailed as failure:
            self._record_failure(str(failure))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            self._record_failure(
                f"the state is not in the format of the Durable Functions SDK ({type(error).__name__}: {error})"
            )
        return self._build_turn()

    def _deliver_messages(self) -> None:
        """Append the new messages to the history, and schedule retries in the order of the SDK's task ids."""
        self._new.append(events.build_event(EventType.ORCHESTRATOR_STARTED, self._now))
        for message in self._work.messages:
            if message.kind is MessageKind.START:
                self._new.append(events.build_execution_started(self._start, self._now))
                continue
            self._new.append(message.event)
            self._apply_message_to_progress(message)

    def _apply_message_to_progress(self, message: OrchestrationMessage) -> None:
        """Update the progress of the orchestration after a delivered message.

        An external event ends a wait. A timer can start the retry of a failed call. The failure of a call that has a
        retry policy starts the timer of the retry.
        """
        event = message.event
        if message.kind is MessageKind.RAISED:
            self._progress.waits[event["Name"]] -= 1
        elif message.kind is MessageKind.TIMER:
            retry = self._progress.waiting.pop(event["TimerId"], None)
            if retry is not None and retry.attempts < retry.action["retryOptions"]["maxNumberOfAttempts"]:
                self._schedule_call(retry.action, RetryState(retry.action, retry.attempts + 1))
        else:
            retry = self._progress.running.pop(event["TaskScheduledId"], None)
            if retry is not None and _is_failure(event):
                pause = timedelta(milliseconds=retry.action["retryOptions"]["firstRetryIntervalInMilliseconds"])
                self._progress.waiting[self._create_timer(self._now + pause)] = retry

    async def _call_orchestrator_and_get_state(self, run_orchestrator: Orchestrate) -> _OrchestratorState:
        """Call the orchestrator and return its state.

        If the orchestrator raises an exception, the SDK appends the state to the exception's text.
        """
        try:
            context = self._build_orchestrator_context()
            return _OrchestratorState(json.loads(await run_orchestrator(self._start.name, context)), None)
        except OrchestratorFailed as failure:
            message, mark, text = str(failure).rpartition(_STATE_MARK)
            if not mark:
                raise
            state = json.loads(text)
            return _OrchestratorState(state, state.get("error") or message)

    def _build_orchestrator_context(self) -> JsonText:
        played = ['{"IsPlayed":true,' + text[1:] for text in self._work.history]
        fresh = ['{"IsPlayed":false,' + json.dumps(event)[1:] for event in self._new]
        members = {
            "instanceId": self._start.instance,
            "isReplaying": bool(played),
            "parentInstanceId": self._start.parent and self._start.parent.instance,
            "upperSchemaVersion": _SCHEMA_2,
            "upperSchemaVersionNew": _SCHEMA_3,
        }
        given = self._start.input if self._start.input is not None else "null"
        return f'{json.dumps(members)[:-1]},"input":{given},"history":[{",".join(played + fresh)}]}}'

    def _apply_orchestrator_state(self, orchestrator_state: _OrchestratorState) -> None:
        """Apply the state that the orchestrator returned: schedule its new actions, or record its result or failure."""
        state, error = orchestrator_state
        if state.get("customStatus") is not None:
            self._turn.custom_status = json.dumps(state["customStatus"])
        requested = [action for group in state["actions"] for action in actions.iterate_single_actions(group)]
        reason = self._find_replay_deviation_message(requested) or self._schedule_new_actions_and_find_error(requested)
        if reason:
            self._record_failure(reason)
        elif error is not None:
            self._record_failure(error)
        elif state["isDone"] and self._turn.continue_with is None:
            self._turn.status = OrchestrationStatus.COMPLETED
            self._turn.output = json.dumps(state["output"]) if state.get("output") is not None else None

    def _find_replay_deviation_message(self, requested: Sequence[Action]) -> str | None:
        """Return an error message if the replay requested other actions than the earlier turns, else None."""
        for position, before in enumerate(self._progress.asked):
            now = actions.format_action_signature(requested[position]) if position < len(requested) else "nothing"
            if now != before.signature:
                return (
                    f"Non-Deterministic workflow detected: step {position + 1} was {before.signature} and is {now} "
                    "on replay. An orchestrator must request the same tasks in the same order in every replay."
                )
            if before.task is not None and requested[position].get("isCanceled"):
                self._cancel_timer(before.task)
        return None

    def _cancel_timer(self, timer_id: TaskId) -> None:
        if timer_id not in self._progress.cancelled:
            self._progress.cancelled.append(timer_id)
            self._turn.cancelled.append(timer_id)

    def _schedule_new_actions_and_find_error(self, requested: Sequence[Action]) -> str | None:
        """Schedule the actions that no earlier turn requested; return an error message if an action is invalid."""
        for action in requested[len(self._progress.asked) :]:
            kind = actions.read_action_type(action)
            if kind in actions.UNSUPPORTED:
                return f"the local host does not support {actions.UNSUPPORTED[kind]}"
            if kind in actions.ACTIVITIES and action["functionName"] not in self._known.activities:
                return build_unknown_function_message(action["functionName"], "activity")
            if kind in actions.SUB_ORCHESTRATIONS and action["functionName"] not in self._known.orchestrators:
                return build_unknown_function_message(action["functionName"], "orchestrator")
            self._progress.asked.append(
                ScheduledAction(actions.format_action_signature(action), self._schedule_action(kind, action))
            )
        return None

    def _schedule_action(self, kind: ActionType, action: Action) -> TaskId | None:
        """Schedule an action of the orchestrator; return the id of its task, None for an action without a task."""
        if kind is ActionType.CONTINUE_AS_NEW:
            self._turn.continue_with = json.dumps(action["input"])
            return None
        if kind is ActionType.WAIT_FOR_EXTERNAL_EVENT:
            name = action["externalEventName"]
            self._progress.waits[name] = self._progress.waits.get(name, 0) + 1
            return None
        if kind is ActionType.CREATE_TIMER:
            task = self._create_timer(parse_rfc3339(action["fireAt"]))
            if action.get("isCanceled"):
                self._cancel_timer(task)
            return task
        return self._schedule_call(action, RetryState(action, 1) if kind in actions.WITH_RETRY else None)

    def _create_timer(self, due: datetime) -> TaskId:
        """Start a timer that is due at a time; return the id of its task."""
        task = self._progress.assign_task_id()
        self._new.append(events.build_event(EventType.TIMER_CREATED, self._now, task, FireAt=format_rfc3339(due)))
        self._turn.timers.append((task, due))
        return task

    def _schedule_call(self, action: Action, retry: RetryState | None) -> TaskId:
        """Schedule the call of an activity or sub-orchestration; return the id of its task."""
        task = self._progress.assign_task_id()
        if retry is not None:
            self._progress.running[task] = retry
        name, given = action["functionName"], action["input"]
        if actions.read_action_type(action) in actions.ACTIVITIES:
            self._new.append(events.build_event(EventType.TASK_SCHEDULED, self._now, task, Name=name, Input=given))
            self._turn.activities.append(Activity(self._start.instance, self._start.execution, task, name, given))
            return task
        instance = action.get("instanceId") or f"{self._start.execution}:{task:04x}"
        self._new.append(
            events.build_event(
                EventType.SUB_ORCHESTRATION_CREATED,
                self._now,
                task,
                Name=name,
                InstanceId=instance,
                Input=json.dumps(given),
            )
        )
        parent = Parent(self._start.instance, self._start.execution, task)
        self._turn.children.append(
            NewInstance(
                instance,
                f"{self._start.execution}-{task}",
                name,
                action.get("version") or self._known.version,
                json.dumps(given),
                parent,
            )
        )
        return task

    def _record_failure(self, reason: str) -> None:
        self._turn.status = OrchestrationStatus.FAILED
        self._turn.continue_with = None
        self._turn.output = json.dumps(f"Orchestrator function '{self._start.name}' failed: {reason}")

    def _build_turn(self) -> Turn:
        """Add the final history events of the turn (``OrchestratorCompleted`` is the last), and return its result."""
        if self._turn.status.has_ended:
            how, result = self._turn.status, self._turn.output
            self._new.append(
                events.build_event(EventType.EXECUTION_COMPLETED, self._now, OrchestrationStatus=how, Result=result)
            )
        self._new.append(events.build_event(EventType.ORCHESTRATOR_COMPLETED, self._now))
        self._turn.history = [json.dumps(event) for event in self._new]
        return self._turn


def _is_failure(event: Event) -> bool:
    return event["EventType"] in {EventType.TASK_FAILED, EventType.SUB_ORCHESTRATION_FAILED}


def build_unknown_function_message(name: str, function_kind: str) -> str:
    """Return the message of the Durable Task extension about an unknown function."""
    return f"The function '{name}' doesn't exist, is disabled, or is not an {function_kind} function."
