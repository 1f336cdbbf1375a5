"""Tests of comparing payloads with the declared types of signals, and of proposing signals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.models import Connection, SignalDefinition
from shared.catalog.signal_models import MAX_SIGNALS
from shared.telemetry.signals import build_signal_checks, has_type_mismatch, propose_signals_as_json
from tests.unit.shared.telemetry.json_values import JSON


@pytest.mark.parametrize(
    ("kind", "matching", "contradicting"),
    [
        ("real", [1, 1.5, -(2**70), 0], [True, "1.5", [], {}]),
        ("long", [1, 1.0, 2**63 - 1, -(2**63)], [1.5, 2**63, -(2**63) - 1, 1e300, True, "1"]),
        ("bool", [True, False], [0, 1, "true"]),
        ("string", ["", "text", "2026-01-05T08:00:00Z"], [1, True, {"a": 1}]),
        (
            "datetime",
            ["2026-01-05T08:00:00Z", "2026-01-05t08:00:00.123+02:00"],
            ["2026-01-05", "2026-01-05T08:00:00", 0],
        ),
    ],
)
def test_a_value_has_or_contradicts_its_type(kind: str, matching: list[Any], contradicting: list[Any]) -> None:
    """A value either has its declared type or contradicts it; a missing or null value does not contradict it."""
    signal = SignalDefinition.model_validate({"name": "s", "pointer": "/a/0~1b", "type": kind})
    checks = build_signal_checks([signal])
    for value in (*matching, None):
        assert not has_type_mismatch(checks, {"a": {"0/b": value}}), value
    for value in contradicting:
        assert has_type_mismatch(checks, {"a": {"0/b": value}}), value
    assert not has_type_mismatch(checks, {"a": 4})


def test_one_value_of_a_wrong_type_contradicts_the_signals() -> None:
    """A message contradicts its signals if one value has another type."""
    signals = [
        SignalDefinition.model_validate({"name": name, "pointer": f"/{name}", "type": "real"})
        for name in ("first", "second")
    ]
    checks = build_signal_checks(signals)
    assert has_type_mismatch(checks, {"first": 1, "second": "two"})
    assert not has_type_mismatch(checks, {"first": 1, "other": "two"})


def infer_signal(*values: Any) -> dict[str, Any]:
    """Return the signal that is proposed for messages with the given values of one property."""
    [signal] = propose_signals_as_json([{"a": value} for value in values])
    return signal


def test_each_scalar_property_is_proposed_as_a_signal() -> None:
    """Each scalar property is proposed as a signal with its pointer, its limits, and the share of messages with it."""
    messages: list[dict[str, Any]] = [
        {"pressure": 3.5, "motor": {"on": True, "a/b~c": "x"}, "list": [1], "none": None},
        {"pressure": 4, "count": 7, "at": "2026-01-05T08:00:00Z"},
        {"pressure": 2, "motor": {"on": False}},
    ]
    assert propose_signals_as_json(messages) == [
        {"name": "at", "pointer": "/at", "type": "datetime", "share": 0.3333, "min": None, "max": None},
        {"name": "count", "pointer": "/count", "type": "long", "share": 0.3333, "min": 7, "max": 7},
        {"name": "a/b~c", "pointer": "/motor/a~1b~0c", "type": "string", "share": 0.3333, "min": None, "max": None},
        {"name": "on", "pointer": "/motor/on", "type": "bool", "share": 0.6667, "min": None, "max": None},
        {"name": "pressure", "pointer": "/pressure", "type": "real", "share": 1.0, "min": 2, "max": 4},
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "long"),
        ([1, 2, 2.5], "real"),
        ([2**64], "real"),
        ([True, True, 1], "bool"),
        (["2026-01-05T08:00:00Z", "soon"], "string"),
        ([1.5, "n/a", 2], "real"),
        ([None, 4], "long"),
    ],
)
def test_the_most_frequent_type_of_a_field_is_proposed(values: list[Any], kind: str) -> None:
    """The most frequent type of a field is proposed; mixed numbers are real, and mixed texts and times are strings."""
    assert infer_signal(*values)["type"] == kind


def test_names_of_proposed_signals_are_unique() -> None:
    """Fields with the same last name are named by their paths; a field without a valid name is left out."""
    signals = propose_signals_as_json([{"a": {"t": 1}, "b": {"t": 2}, "c": 3, "": 4, "x\u0000": 5, "y" * 600: 6}])
    assert [signal["name"] for signal in signals] == ["a.t", "b.t", "c"]


def test_the_number_of_proposed_signals_is_limited() -> None:
    """If there are too many fields, those in the most messages are proposed."""
    messages = [{f"once-{number}-{index}": 1 for index in range(600)} | {"zzz": 1} for number in range(2)]
    signals = propose_signals_as_json(messages)
    assert len(signals) == MAX_SIGNALS
    assert signals[-1]["name"] == "zzz"
    assert signals[-1]["share"] == 1.0


@given(st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=5), min_size=1, max_size=5))
def test_proposals_can_be_declared(payloads: list[dict[str, Any]]) -> None:
    """Each proposal, without its share of messages, is a valid declaration."""
    signals = [
        {name: value for name, value in one.items() if name != "share"} for one in propose_signals_as_json(payloads)
    ]
    declared = Connection.model_validate({"lookup": "rig", "name": "rig", "type": "CLOUD_IOT_HUB", "signals": signals})
    assert len({signal.name for signal in declared.signals}) == len(signals)
