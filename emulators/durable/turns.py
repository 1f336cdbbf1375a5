"""Turn of an orchestration: delivers messages to the orchestrator and schedules the tasks that it requests."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from emulators.durable import actions, events, records
from emulators.durable.actions import Action, ActionType
from emulators.durable.events import Event, EventType
from emulators.durable.records import (
    Activity,
    MessageKind,
    NewInstance,
    OrchestrationMessage,
    OrchestrationProgress,
    OrchestrationStatus,
    Parent,
    RetryState,
    ScheduledAction,
    TurnInput,
)
from shared.timestamps import parse_rfc3339, rfc3339

MAX_HISTORY = 50_000
"""Most events of a history, because each turn replays all of them."""

_STATE_MARK = "\n\n$OutOfProcData$:"
_SCHEMA_2, _SCHEMA_3 = 1, 2


class OrchestratorFailed(Exception):  # noqa: N818  an event in the app's life, not an error of the host
    """Exception of an orchestrator, with the text of the worker library."""


type Orchestrate = Callable[[str, str], Awaitable[str]]
"""Calls an orchestrator by name with its context as JSON text and returns its state as JSON text."""


@dataclass(frozen=True, slots=True)
class FunctionNames:
    """Functions that an orchestrator may call.

    Attributes:
        activities: names of the app's activities.
        orchestrators: names of its orchestrators.
        version: version of an orchestration that is started without one.
    """

    activities: frozenset[str]
    orchestrators: frozenset[str]
    version: str | None = None


@dataclass(slots=True)
class Turn:
    """Result of a turn, which is stored in one transaction.

    Attributes:
        history: new events, as JSON texts.
        progress: progress after the turn.
        status: status after the turn.
        output: JSON text, None for none.
        custom_status: JSON text, None for none.
        activities: activities to run.
        timers: id and instant of each new timer.
        children: sub-orchestrations to start.
        cancelled: ids of cancelled timers.
        continue_with: input as JSON text if the orchestration continues as new.
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


async def run_turn(work: TurnInput, run_orchestrator: Orchestrate, known: FunctionNames, now: datetime) -> Turn:
    """Run one turn.

    Args:
        work: the instance, its history and the new messages.
        run_orchestrator: calls the orchestrator.
        known: activities and orchestrators of the app.
        now: current time for the orchestrator.
    """
    return await _TurnRunner(work, known, now).run(run_orchestrator)


class _TurnRunner:
    def __init__(self, work: TurnInput, known: FunctionNames, now: datetime) -> None:
        self._work = work
        self._start = work.instance.start
        self._known = known
        self._now = now
        self._progress = records.load_progress(work.progress)
        self._new: list[Event] = []
        self._turn = Turn([], self._progress)

    async def run(self, run_orchestrator: Orchestrate) -> Turn:
        if len(self._work.history) > MAX_HISTORY:
            self._fail(f"its history has more than {MAX_HISTORY} events; let it continue as new")
            return self._finish()
        try:
            self._deliver()
            state, error = await self._call_orchestrator(run_orchestrator)
            self._apply_state(state, error)
        except OrchestratorFailed as failure:
            self._fail(str(failure))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            self._fail(f"its state is not in the format of the Durable Functions SDK ({type(error).__name__}: {error})")
        return self._finish()

    def _deliver(self) -> None:
        """Append the messages to the history; retries get their task ids now, as in the SDK."""
        self._new.append(events.event(EventType.ORCHESTRATOR_STARTED, self._now))
        for message in self._work.messages:
            if message.kind is MessageKind.START:
                self._new.append(events.execution_started(self._start, self._now))
                continue
            self._new.append(message.event)
            self._record_message(message)

    def _record_message(self, message: OrchestrationMessage) -> None:
        event = message.event
        if message.kind is MessageKind.RAISED:
            self._progress.waits[event["Name"]] -= 1
        elif message.kind is MessageKind.TIMER:
            retry = self._progress.waiting.pop(event["TimerId"], None)
            if retry is not None and retry.attempts < retry.action["retryOptions"]["maxNumberOfAttempts"]:
                self._call(retry.action, RetryState(retry.action, retry.attempts + 1))
        else:
            retry = self._progress.running.pop(event["TaskScheduledId"], None)
            if retry is not None and _failed(event):
                pause = timedelta(milliseconds=retry.action["retryOptions"]["firstRetryIntervalInMilliseconds"])
                self._progress.waiting[self._timer(self._now + pause)] = retry

    async def _call_orchestrator(self, run_orchestrator: Orchestrate) -> tuple[Mapping[str, Any], str | None]:
        """Return the orchestrator's state and its error; the SDK appends the state to the text of an exception."""
        try:
            return json.loads(await run_orchestrator(self._start.name, self._context())), None
        except OrchestratorFailed as failure:
            message, mark, text = str(failure).rpartition(_STATE_MARK)
            if not mark:
                raise
            state = json.loads(text)
            return state, state.get("error") or message

    def _context(self) -> str:
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

    def _apply_state(self, state: Mapping[str, Any], error: str | None) -> None:
        """Apply the orchestrator's state: schedule new actions, complete or fail."""
        if state.get("customStatus") is not None:
            self._turn.custom_status = json.dumps(state["customStatus"])
        requested = [action for group in state["actions"] for action in actions.flatten(group)]
        reason = self._find_deviation(requested) or self._schedule_new(requested)
        if reason:
            self._fail(reason)
        elif error is not None:
            self._fail(error)
        elif state["isDone"] and self._turn.continue_with is None:
            self._turn.status = OrchestrationStatus.COMPLETED
            self._turn.output = json.dumps(state["output"]) if state.get("output") is not None else None

    def _find_deviation(self, requested: Sequence[Action]) -> str | None:
        """Return a message if the orchestrator changed earlier actions, else None."""
        for position, before in enumerate(self._progress.asked):
            now = actions.signature(requested[position]) if position < len(requested) else "nothing"
            if now != before.signature:
                return (
                    f"Non-Deterministic workflow detected: step {position + 1} was {before.signature} and is {now} "
                    "on replay. An orchestrator must request the same tasks in the same order in every replay."
                )
            if before.task is not None and requested[position].get("isCanceled"):
                self._cancel(before.task)
        return None

    def _cancel(self, timer: int) -> None:
        if timer not in self._progress.cancelled:
            self._progress.cancelled.append(timer)
            self._turn.cancelled.append(timer)

    def _schedule_new(self, requested: Sequence[Action]) -> str | None:
        """Schedule new actions; return an error message if one cannot be scheduled."""
        for action in requested[len(self._progress.asked) :]:
            kind = actions.read_type(action)
            if kind in actions.UNSUPPORTED:
                return f"the local host does not support {actions.UNSUPPORTED[kind]}"
            if kind in actions.ACTIVITIES and action["functionName"] not in self._known.activities:
                return unknown_function_message(action["functionName"], "activity")
            if kind in actions.SUB_ORCHESTRATIONS and action["functionName"] not in self._known.orchestrators:
                return unknown_function_message(action["functionName"], "orchestrator")
            self._progress.asked.append(ScheduledAction(actions.signature(action), self._schedule(kind, action)))
        return None

    def _schedule(self, kind: ActionType, action: Action) -> int | None:
        if kind is ActionType.CONTINUE_AS_NEW:
            self._turn.continue_with = json.dumps(action["input"])
            return None
        if kind is ActionType.WAIT_FOR_EXTERNAL_EVENT:
            name = action["externalEventName"]
            self._progress.waits[name] = self._progress.waits.get(name, 0) + 1
            return None
        if kind is ActionType.CREATE_TIMER:
            task = self._timer(parse_rfc3339(action["fireAt"]))
            if action.get("isCanceled"):
                self._cancel(task)
            return task
        return self._call(action, RetryState(action, 1) if kind in actions.WITH_RETRY else None)

    def _timer(self, due: datetime) -> int:
        task = self._progress.new_task()
        self._new.append(events.event(EventType.TIMER_CREATED, self._now, task, FireAt=rfc3339(due)))
        self._turn.timers.append((task, due))
        return task

    def _call(self, action: Action, retry: RetryState | None) -> int:
        task = self._progress.new_task()
        if retry is not None:
            self._progress.running[task] = retry
        name, given = action["functionName"], action["input"]
        if actions.read_type(action) in actions.ACTIVITIES:
            self._new.append(events.event(EventType.TASK_SCHEDULED, self._now, task, Name=name, Input=given))
            self._turn.activities.append(Activity(self._start.instance, self._start.execution, task, name, given))
            return task
        instance = action.get("instanceId") or f"{self._start.execution}:{task:04x}"
        self._new.append(
            events.event(
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

    def _fail(self, reason: str) -> None:
        self._turn.status = OrchestrationStatus.FAILED
        self._turn.continue_with = None
        self._turn.output = json.dumps(f"Orchestrator function '{self._start.name}' failed: {reason}")

    def _finish(self) -> Turn:
        if self._turn.status.ended:
            how, result = self._turn.status, self._turn.output
            self._new.append(
                events.event(EventType.EXECUTION_COMPLETED, self._now, OrchestrationStatus=how, Result=result)
            )
        self._new.append(events.event(EventType.ORCHESTRATOR_COMPLETED, self._now))
        self._turn.history = [json.dumps(event) for event in self._new]
        return self._turn


def _failed(event: Event) -> bool:
    return event["EventType"] in {EventType.TASK_FAILED, EventType.SUB_ORCHESTRATION_FAILED}


def unknown_function_message(name: str, what: str) -> str:
    """Return the Durable Task extension's error message for an unknown function name."""
    return f"The function '{name}' doesn't exist, is disabled, or is not an {what} function."
