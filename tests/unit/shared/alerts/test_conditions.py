"""Tests of the conditions of alert rules."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.alerts.conditions import EvaluationError, evaluate_absence_rule_groups, evaluate_threshold_rule_groups
from shared.telemetry.ports import ConnectionState
from tests.unit.shared.alerts.fakes import AT, SECOND, build_absence_rule, build_result, build_rule


def evaluate_row(value: Any, operator: str = "gt", limit: float = 5, kind: str = "real") -> tuple[Any, bool]:
    """Evaluate a query result of one row; return the row's value and whether it meets the condition."""
    rule = build_rule(condition={"column": "value", "operator": operator, "value": limit})
    [group] = evaluate_threshold_rule_groups(rule, build_result({"value": value}, value=kind))
    return group.value, group.matches


@pytest.mark.parametrize(
    ("operator", "matching"),
    [("gt", [6]), ("ge", [5, 6]), ("lt", [4]), ("le", [4, 5]), ("eq", [5]), ("ne", [4, 6])],
)
def test_operators_compare_value_and_limit(operator: str, matching: list[int]) -> None:
    """Each operator compares the value in the rule's column with the rule's limit."""
    assert [value for value in (4, 5, 6) if evaluate_row(value, operator)[1]] == matching


@pytest.mark.parametrize(
    "value", [None, "9", True, float("nan"), float("inf"), float("-inf"), {"a": 9}, [9], "NaN", "Infinity"]
)
@pytest.mark.parametrize("operator", ["gt", "ne", "lt"])
def test_only_finite_numbers_meet_a_condition(value: Any, operator: str) -> None:
    """Only finite numbers meet a condition; null, text, booleans, objects, NaN and infinity do not."""
    assert evaluate_row(value, operator) == (None, False)


@pytest.mark.parametrize(("text", "expected"), [("6.50", (6.5, True)), ("1e400", (None, False)), ("x", (None, False))])
def test_decimal_values_are_compared_as_numbers(text: str, expected: tuple[Any, bool]) -> None:
    """Decimal values, which the engine returns as text, are compared as numbers."""
    assert evaluate_row(text, kind="decimal") == expected


@pytest.mark.parametrize("kind", ["dynamic", "decimal"])
def test_an_integer_outside_the_range_of_a_double_meets_no_condition(kind: str) -> None:
    """An integer that is too large for a double is no number for a condition, and does not fail the evaluation."""
    assert evaluate_row(10**400, kind=kind) == (None, False)


def test_large_integers_are_compared_exactly() -> None:
    """A long that a double cannot represent is compared as an integer."""
    assert evaluate_row(2**53 + 1, "gt", 2**53) == (2**53 + 1, True)


def test_a_rule_without_groups_has_the_value_of_the_first_matching_row() -> None:
    """A rule without groups has one alert, with the value of the first matching row, or else of the first row."""
    rows: list[dict[str, Any]] = [{"value": value} for value in (None, 1, 7, 9)]
    [group] = evaluate_threshold_rule_groups(build_rule(), build_result(*rows))
    assert (group.labels, group.value, group.matches) == ({}, 7, True)
    [group] = evaluate_threshold_rule_groups(build_rule(), build_result(*rows[1:2]))
    assert (group.value, group.matches) == (1, False)
    assert evaluate_threshold_rule_groups(build_rule(), build_result()) == []


def test_each_combination_of_group_values_is_a_group() -> None:
    """Each combination of values in the `groupBy` columns is a group; its labels are text, null or JSON text."""
    rule = build_rule(groupBy=["device", "line"])
    rows: list[dict[str, Any]] = [
        {"device": "a", "line": 1, "value": 4},
        {"device": "a", "line": 1, "value": 8},
        {"device": "a", "line": None, "value": 9},
        {"device": {"b": "ü"}, "line": True, "value": 1},
    ]
    groups = evaluate_threshold_rule_groups(rule, build_result(*rows))
    assert [(group.labels, group.value, group.matches) for group in groups] == [
        ({"device": "a", "line": "1"}, 8, True),
        ({"device": "a", "line": None}, 9, True),
        ({"device": '{"b": "ü"}', "line": "true"}, 1, False),
    ]


@pytest.mark.parametrize(("rows", "count", "matches"), [("any", 2, True), ("any", 0, False), ("none", 0, True)])
def test_rows_any_and_none_count_rows(rows: str, count: int, *, matches: bool) -> None:
    """`rows: any` matches if there are rows, and `rows: none` if there are none; the number of rows is the value."""
    rule = build_rule(condition={"rows": rows})
    [group] = evaluate_threshold_rule_groups(rule, build_result(*({"value": 1} for _ in range(count))))
    assert (group.labels, group.value, group.matches) == ({}, count, matches)


def test_rows_are_counted_for_each_group() -> None:
    """With `rows: any` and groups, each group has an alert with the number of its rows."""
    rule = build_rule(condition={"rows": "any"}, groupBy=["device"])
    groups = evaluate_threshold_rule_groups(rule, build_result({"device": "a"}, {"device": "b"}, {"device": "a"}))
    assert [(group.labels["device"], group.value, group.matches) for group in groups] == [
        ("a", 2, True),
        ("b", 1, True),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"groupBy": ["line"]}, "no column 'line'"), ({"groupBy": ["device"], "query": "x"}, "no column 'device'")],
)
def test_a_missing_column_fails_the_evaluation(changes: dict[str, Any], reason: str) -> None:
    """If the result lacks a column of the rule, the evaluation fails, so that no alert is resolved."""
    with pytest.raises(EvaluationError, match=reason):
        evaluate_threshold_rule_groups(build_rule(**changes), build_result({"value": 1}))


def test_a_truncated_result_fails_the_evaluation() -> None:
    """If a result is truncated, the evaluation fails, because missing groups would seem resolved.

    Conditions on the number of rows accept a truncated result.
    """
    result = build_result({"value": 9}, truncated=True)
    with pytest.raises(EvaluationError, match="more than 1 rows"):
        evaluate_threshold_rule_groups(build_rule(), result)
    [group] = evaluate_threshold_rule_groups(build_rule(condition={"rows": "any"}), result)
    assert group.matches


def test_group_labels_over_the_length_limit_fail_the_evaluation() -> None:
    """A group label over the length limit fails the evaluation, because shortened labels would be ambiguous."""
    rule = build_rule(groupBy=["device"])
    with pytest.raises(EvaluationError, match="characters"):
        evaluate_threshold_rule_groups(rule, build_result({"device": "x" * 5_000, "value": 9}))


_CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


@given(st.lists(st.fixed_dictionaries({"value": _CELLS, "device": _CELLS}), max_size=8))
def test_any_rows_give_unique_groups_with_json_values(rows: list[dict[str, Any]]) -> None:
    """Whatever the cells contain, groups are unique, values are finite numbers, and no exception is raised."""
    groups = evaluate_threshold_rule_groups(build_rule(groupBy=["device"]), build_result(*rows))
    assert len({group.key for group in groups}) == len(groups)
    json.dumps([group.value for group in groups], allow_nan=False)
    assert all(group.value is not None and group.value > 5 for group in groups if group.matches)


@pytest.mark.parametrize(
    ("last", "created", "silence", "matches"),
    [
        (AT - 300 * SECOND, AT - timedelta(days=1), 300, True),
        (AT - 299 * SECOND, AT - timedelta(days=1), 299, False),
        (None, AT - 300 * SECOND, 300, True),
        (None, AT - 10 * SECOND, 10, False),
        (AT + 60 * SECOND, AT, 0, False),
    ],
)
def test_the_silence_of_a_connection_begins_at_its_last_message(
    last: Any, created: Any, silence: float, *, matches: bool
) -> None:
    """A connection's silence begins at its last message or else its creation; a future message counts as just sent."""
    states = {"press": ConnectionState("CONNECTED", 7, last)}
    [group] = evaluate_absence_rule_groups(build_absence_rule(), ["press"], states, created, AT)
    assert (group.labels, group.value, group.matches) == ({"connection": "press"}, silence, matches)
    assert (group.connection, group.message_count) == ("press", 7)


def test_an_absence_rule_has_no_group_for_disabled_connections() -> None:
    """An absence rule has no alert for a disabled or deleted connection."""
    rule = build_absence_rule(connections=["press", "lathe"])
    groups = evaluate_absence_rule_groups(rule, ["press"], {}, AT - timedelta(days=1), AT)
    assert [group.connection for group in groups] == ["press"]
