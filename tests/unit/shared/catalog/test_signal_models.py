"""Tests of the rules for a connection's signals."""

from typing import Any

import pytest

from shared.catalog.signal_models import SignalDefinition, check_signals


def find_signal_errors(*signals: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """Check a connection's signals; return the field and the message of each error."""
    return list(check_signals(("signals",), [SignalDefinition.model_validate(each) for each in signals]))


def test_signal_names_and_pointers_are_unique() -> None:
    """If two signals have the same name or pointer, the error is at the second signal."""
    found = find_signal_errors(
        {"name": "t", "pointer": "/t", "type": "real"},
        {"name": "t", "pointer": "/u", "type": "real"},
        {"name": "v", "pointer": "/t", "type": "real"},
    )
    assert [path for path, _ in found] == [("signals", 1, "name"), ("signals", 2, "pointer")]


@pytest.mark.parametrize(
    ("signal", "fields"),
    [
        ({"type": "real", "min": 1, "max": 2}, []),
        ({"type": "long", "min": 2, "max": 2}, []),
        ({"type": "real", "min": 3, "max": 2}, ["min"]),
        ({"type": "string", "min": 1, "max": 2}, ["min", "max"]),
        ({"type": "bool", "max": 0}, ["max"]),
    ],
)
def test_only_numeric_signals_have_limits_in_order(signal: dict[str, Any], fields: list[str]) -> None:
    """Only numeric signals can have limits, and the lower limit must not exceed the upper limit."""
    found = find_signal_errors({"name": "t", "pointer": "/t", **signal})
    assert [path for path, _ in found] == [("signals", 0, field) for field in fields]
