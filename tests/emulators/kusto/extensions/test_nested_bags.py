"""Tests of functions over nested property bags."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

BAG = "dynamic({'pump': {'speed': 5, 'unit': 'rpm'}, 'site': 'north'})"
VALUES: list[tuple[str, Any]] = [
    (f"bag_remove_keys({BAG}, dynamic(['$.pump.unit', 'site']))", {"pump": {"speed": 5}}),
    (f"bag_remove_keys({BAG}, dynamic([\"$['pump'].speed\"]))", {"pump": {"unit": "rpm"}, "site": "north"}),
    ("bag_remove_keys(dynamic({'a': [1, 2]}), dynamic(['$.a[0]', '$', '$.b.c']))", {"a": [1, 2]}),
    ("bag_set_key(dynamic({'a': {'b': 1, 'c': 2}}), '$.a.b', 'x')", {"a": {"b": "x", "c": 2}}),
    ("bag_set_key(dynamic({'a': 1}), '$.b.c', dynamic([1]))", {"a": 1, "b": {"c": [1]}}),
    ("bag_set_key(dynamic({'a': [1]}), '$.a[0]', 2)", None),
    ("dynamic_to_json(dynamic({'b': [{'d': 1.0, 'c': null}], 'a': 'x'}))", '{"a":"x","b":[{"c":null,"d":1.0}]}'),
    ("dynamic_to_json(dynamic({'a': 1, 'b': 2})) == dynamic_to_json(dynamic({'b': 2, 'a': 1}))", True),
    ("dynamic_to_json(1.5)", "1.5"),
    ("dynamic({'a': {'b': 3}}).['a'].b", 3),
]
ROWS: list[tuple[str, list[Any]]] = [
    ("print d = dynamic({'a': 1, 'b \"c': 2}), k = 'b \"c' | project x = d[k], y = d[strcat('a', '')]", [2, 1]),
    ("print d = dynamic({'a': [5, 6]}), i = -1 | project x = d.a[i], y = d['a'].[i], z = d[tostring(i)]", [6, 6, None]),
    (
        "print d = dynamic({'a/b~': 1, 'b\\\\': 2}) | project x = d[strcat('a', '/b~')], y = d[strcat('b', '\\\\')]",
        [1, 2],
    ),
    (
        "print d = dynamic([5]), k = '' | project x = d[k], y = d[strcat('0', k)], z = dynamic({'': 1})[k]",
        [None, None, 1],
    ),
    ("let f = (bag:dynamic, key:string) { tolong(bag.[key]) }; print f(dynamic({'a': 7}), 'a')", [7]),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_nested_values(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A path selects a value in a nested bag, and canonical JSON has sorted keys."""
    assert endpoint.rows(f"print x = {expression}") == [[value]]


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_indexes(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """In a dynamic, a string index selects a key, and a number selects a position."""
    assert endpoint.rows(text) == [row]
