"""Tests of functions over nested property bags, and of the functions that sort several arrays."""

import json
from typing import Any

import pytest

from emulators.kusto.extensions.nested_values import functions
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
    ("bag_remove_keys(dynamic({'a': {'b': 1, 'c': 2}}), dynamic([null, '$.a.b']))", {"a": {"c": 2}}),
    ("bag_remove_keys(dynamic({'a': 1, 'b': 2}), dynamic([null, 'b']))", {"a": 1}),
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
def test_paths_select_values_in_nested_property_bags(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A path selects a value in a nested bag; canonical JSON has sorted keys at each level."""
    assert endpoint.query_rows(f"print x = {expression}") == [[value]]


@pytest.mark.parametrize(
    "expression",
    [
        "bag_remove_keys({bag}, dynamic(['$.b.c']))",
        "bag_set_key(bag_remove_keys({bag}, dynamic(['b'])), '$.a', {number})",
        "dynamic_to_json(bag_remove_keys({bag}, dynamic(['b'])))",
    ],
)
@pytest.mark.parametrize("number", ["12345678901234567890123", "-12345678901234567890123", "9" * 300, "9" * 310])
def test_integers_over_64_bits_in_a_bag_keep_their_digits(endpoint: Endpoint, expression: str, number: str) -> None:
    """An integer over 64 bits in a bag keeps all digits."""
    bag = f'parse_json(\'{{"a": {number}, "b": 1}}\')'
    query = expression.format(bag=bag, number=f"parse_json('{number}')")
    (text,) = endpoint.query_rows(f"print x = tostring({query})")[0]
    assert text.startswith(f'{{"a":{number}')


@pytest.mark.parametrize("steps", [101, 300, 3000])
@pytest.mark.parametrize("call", ["bag_remove_keys({bag}, dynamic(['{path}']))", "bag_set_key({bag}, '{path}', 1)"])
def test_paths_of_more_than_100_steps_are_rejected(endpoint: Endpoint, call: str, steps: int) -> None:
    """A path of more than 100 steps into a dynamic value is rejected with the limit."""
    error = endpoint.query_error("print x = " + call.format(bag=BAG, path="$" + ".a" * steps))
    assert "a path of more than 100 steps" in str(error)


def test_a_path_can_have_100_steps(endpoint: Endpoint) -> None:
    """A path of 100 steps into a dynamic value is accepted."""
    path = "$" + ".a" * 100
    rows = endpoint.query_rows(
        f"print with_key = bag_set_key(dynamic({{'a': 1}}), '{path}', 7) "
        f"| extend without_key = bag_remove_keys(with_key, dynamic(['{path}'])) "
        "| project tostring(with_key), tostring(without_key)"
    )
    assert rows == [['{"a":' * 100 + "7" + "}" * 100, '{"a":' * 99 + "{}" + "}" * 99]]


@pytest.mark.parametrize("levels", [300, 3000])
def test_property_bags_with_too_many_levels_are_rejected(endpoint: Endpoint, levels: int) -> None:
    """A property bag with too many nested levels is rejected with the reason."""
    bag = f'parse_json(\'{{"a": 1, "b": {"[" * levels}{"]" * levels}}}\')'
    error = endpoint.query_error(f"print x = bag_remove_keys({bag}, dynamic(['$.a']))")
    assert "is nested too deeply" in str(error)


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_string_indexes_select_keys_and_numbers_select_positions(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """In a dynamic, a string index selects a key and a number selects a position."""
    assert endpoint.query_rows(text) == [row]


def test_sorted_arrays_become_columns_with_the_suffix_sorted(endpoint: Endpoint) -> None:
    """Each sorted array is a column with the name of the array and the suffix ``_sorted``."""
    table = endpoint.query_table("print x = dynamic([2, 1]), y = dynamic(['p', 'q']) | project array_sort_asc(x, y)")
    assert [column.column_name for column in table.columns] == ["x_sorted", "y_sorted"]


def test_sorted_arrays_are_compact_json() -> None:
    """The JSON text of sorted arrays has no spaces and no escapes, as that of other dynamic values."""
    (sort,) = (each.run for each in functions if each.name == "kql_sorted_arrays")
    assert sort(['["\u00fc","a"]', "[1,2]"], False, None) == '[["a","\u00fc"],[2,1]]'


ODD_BAG = r"""parse_json(@'{"*":1,"":2,"a\"b":3,"a\\":4,"a/~b":5,"a*":6}')"""
ODD_VALUES = {"*": 1, "": 2, 'a"b': 3, "a\\": 4, "a/~b": 5, "a*": 6}


@pytest.mark.parametrize(("name", "value"), ODD_VALUES.items())
def test_a_property_can_have_any_name(endpoint: Endpoint, name: str, value: int) -> None:
    """A path reads the property of exactly this name, alone, inside another path, and in a conversion."""
    key = json.dumps(name)
    source = f'print d = {ODD_BAG}, other = dynamic({{"b": 1}}) | extend e = pack_array(bag_pack({key}, d))'
    paths = f"d[{key}], tolong(d[{key}]), tostring(d[{key}]), todouble(d[{key}]), e[0][{key}][{key}], other[{key}]"
    keys = f"bag_has_key(d, {key}), bag_has_key(other, {key})"
    rows = endpoint.query_rows(f"{source} | where d[{key}] == {value} | project {paths}, {keys}")
    assert rows == [[value, value, str(value), float(value), value, None, True, False]]


def test_mv_expand_reads_properties_of_any_name(endpoint: Endpoint) -> None:
    """``mv-expand`` of a bag returns each property, whatever its name is, as a bag or as an array."""
    pairs = [[name, value] for name, value in ODD_VALUES.items()]
    assert endpoint.query_rows(f"print d = {ODD_BAG} | mv-expand d") == [[{name: value}] for name, value in pairs]
    assert endpoint.query_rows(f"print d = {ODD_BAG} | mv-expand kind=array d") == [[pair] for pair in pairs]
