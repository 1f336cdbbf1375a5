"""Actions that an orchestrator requests, in the format of the Durable Functions SDK for Python (schemas 2 and 3)."""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any

type Action = Mapping[str, Any]


class ActionType(IntEnum):
    """Action numbers of the SDK."""

    CALL_ACTIVITY = 0
    CALL_ACTIVITY_WITH_RETRY = 1
    CALL_SUB_ORCHESTRATOR = 2
    CALL_SUB_ORCHESTRATOR_WITH_RETRY = 3
    CONTINUE_AS_NEW = 4
    CREATE_TIMER = 5
    WAIT_FOR_EXTERNAL_EVENT = 6
    CALL_ENTITY = 7
    CALL_HTTP = 8
    SIGNAL_ENTITY = 9
    SCHEDULED_SIGNAL_ENTITY = 10
    WHEN_ANY = 11
    WHEN_ALL = 12


ACTIVITIES = frozenset({ActionType.CALL_ACTIVITY, ActionType.CALL_ACTIVITY_WITH_RETRY})
SUB_ORCHESTRATIONS = frozenset({ActionType.CALL_SUB_ORCHESTRATOR, ActionType.CALL_SUB_ORCHESTRATOR_WITH_RETRY})
WITH_RETRY = frozenset({ActionType.CALL_ACTIVITY_WITH_RETRY, ActionType.CALL_SUB_ORCHESTRATOR_WITH_RETRY})
UNSUPPORTED = {
    ActionType.CALL_ENTITY: "call_entity",
    ActionType.CALL_HTTP: "call_http",
    ActionType.SIGNAL_ENTITY: "signal_entity",
    ActionType.SCHEDULED_SIGNAL_ENTITY: "signal_entity",
}
_COMPOUND = frozenset({ActionType.WHEN_ANY, ActionType.WHEN_ALL})


def flatten(actions: Iterable[Action]) -> Iterator[Action]:
    """Yield single actions in the order in which the SDK numbers their tasks."""
    for action in actions:
        if read_type(action) in _COMPOUND:
            yield from flatten(action["compoundActions"])
        else:
            yield action


def read_type(action: Action) -> ActionType:
    """Return the type of an action.

    Raises:
        ValueError: the action is unknown; a later SDK wrote it.
    """
    return ActionType(action["actionType"])


def signature(action: Action) -> str:
    """Return the kind and name of an action, which must be the same in every replay."""
    name = action.get("functionName") or action.get("externalEventName") or ""
    return f"{read_type(action).name.lower()}({name})"
