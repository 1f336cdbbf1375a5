"""Actions that an orchestrator function requests, as JSON in the SDK's format (Durable Functions, schemas 2 and 3)."""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any

type Action = Mapping[str, Any]


class ActionType(IntEnum):
    """Kinds of actions with the numbers that the Durable Functions SDK assigns to them."""

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


def iterate_single_actions(actions: Iterable[Action]) -> Iterator[Action]:
    """Yield single actions in the order of their task ids, including those inside ``task_all`` and ``task_any``."""
    for action in actions:
        if read_action_type(action) in _COMPOUND:
            yield from iterate_single_actions(action["compoundActions"])
        else:
            yield action


def read_action_type(action: Action) -> ActionType:
    """Return the kind of an action, such as a call of an activity or a timer.

    Raises:
        ValueError: the kind is unknown, for example because a newer SDK wrote the action.
    """
    return ActionType(action["actionType"])


def format_action_signature(action: Action) -> str:
    """Return the kind and function name of an action as text, to check that a replay requests the same actions."""
    name = action.get("functionName") or action.get("externalEventName") or ""
    return f"{read_action_type(action).name.lower()}({name})"
