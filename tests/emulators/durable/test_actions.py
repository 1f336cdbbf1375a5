"""Tests of the actions that orchestrators request."""

import pytest

from emulators.durable.actions import ActionType, iterate_single_actions, read_action_type


def test_nested_actions_are_listed_in_the_order_of_the_sdk() -> None:
    """Actions in WhenAll and WhenAny, including nested ones, are listed in the order in which the SDK lists them."""
    first, second, third = ({"actionType": ActionType.CALL_ACTIVITY, "functionName": name} for name in "abc")
    any_of = {"actionType": ActionType.WHEN_ANY, "compoundActions": [second, third]}
    all_of = {"actionType": ActionType.WHEN_ALL, "compoundActions": [first, any_of]}
    assert list(iterate_single_actions([all_of, first])) == [first, second, third, first]


def test_an_unknown_kind_of_action_is_rejected() -> None:
    """An action of an unknown kind, for example of a later SDK, is rejected."""
    with pytest.raises(ValueError, match="99"):
        read_action_type({"actionType": 99})
