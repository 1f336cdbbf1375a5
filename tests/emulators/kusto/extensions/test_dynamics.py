"""Tests of functions over arrays, bags and sets, with the documented results."""

from datetime import timedelta
from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

LARGEST, SMALLEST = "long(9223372036854775807)", "long(-9223372036854775808)"
VALUES: list[tuple[str, Any]] = [
    ("array_split(dynamic([1,2,3,4,5]), 2)", [[1, 2], [3, 4, 5]]),
    ("array_split(dynamic([1,2,3,4,5]), dynamic([1,3]))", [[1], [2, 3], [4, 5]]),
    ("array_sort_asc(dynamic([null,'blue','yellow','green',null]))", ["blue", "green", "yellow", None, None]),
    ("array_sort_asc(dynamic([10,9,100]))", [9, 10, 100]),
    ("array_sort_desc(dynamic([10,9,100]))", [100, 10, 9]),
    ("array_sort_asc(dynamic([null,'b','a']), false)", [None, "a", "b"]),
    ("array_rotate_left(dynamic([1,2,3,4,5]),2)", [3, 4, 5, 1, 2]),
    ("array_rotate_left(dynamic([1,2,3,4,5]),-2)", [4, 5, 1, 2, 3]),
    ("array_rotate_right(dynamic([1,2,3,4,5]),2)", [4, 5, 1, 2, 3]),
    ("array_shift_left(dynamic([1,2,3,4,5]),2)", [3, 4, 5, None, None]),
    ("array_shift_left(dynamic([1,2,3,4,5]),2,-1)", [3, 4, 5, -1, -1]),
    ("array_shift_right(dynamic([1,2,3,4,5]),2)", [None, None, 1, 2, 3]),
    ("array_rotate_left(dynamic([]),2)", []),
    (f"array_rotate_left(dynamic([1,2,3,4,5]),{LARGEST})", [3, 4, 5, 1, 2]),
    (f"array_rotate_right(dynamic([1,2,3,4,5]),{SMALLEST})", [4, 5, 1, 2, 3]),
    (f"array_shift_left(dynamic([1,2]),{LARGEST},0)", [0, 0]),
    (f"array_shift_right(dynamic([1,2]),{SMALLEST},0)", [0, 0]),
    ("array_slice(dynamic([1,2,3]),1,2)", [2, 3]),
    ("array_slice(dynamic([1,2,3,4,5]),2,-1)", [3, 4, 5]),
    ("array_slice(dynamic([1,2,3,4,5]),-3,-2)", [3, 4]),
    ("array_slice(dynamic([1,2,3]),0,-4)", []),
    ("array_slice(dynamic([1,2,3]),0,-5)", []),
    ("array_slice(dynamic([1,2,3]),0,-6)", []),
    (f"array_slice(dynamic([1,2,3]),1,{LARGEST})", [2, 3]),
    (f"array_slice(dynamic([1,2,3]),{LARGEST},{LARGEST})", []),
    (f"array_slice(dynamic([1,2,3]),{SMALLEST},1)", [1, 2]),
    (f"array_slice(dynamic([1,2,3]),0,{SMALLEST})", []),
    ("array_slice(dynamic([1,2,3]),long(null),1)", None),
    (f"array_slice(parse_json('{{}}'),0,{LARGEST})", None),
    ("array_index_of(dynamic(['this','is','an','example']),'an')", 2),
    ("array_index_of(dynamic(['this','is','an','example','an','example']),'an',3)", 4),
    ("array_index_of(dynamic([1,2,3]),9)", -1),
    (f"array_index_of(dynamic([1,2,3]),3,1,{LARGEST})", 2),
    (f"array_index_of(dynamic([1,2,3]),3,{LARGEST},{LARGEST})", -1),
    ("array_sum(dynamic([1,2,3.5]))", 6.5),
    ("array_reverse(dynamic(['a','b']))", ["b", "a"]),
    ("array_iff(dynamic([true,false,true]), dynamic([1,2,3]), dynamic([4,5,6]))", [1, 5, 3]),
    ("array_iff(dynamic([1,0,50]), 'a', 'b')", ["a", "b", "a"]),
    ("bag_keys(dynamic({'a':'b','c':123}))", ["a", "c"]),
    ("bag_has_key(dynamic({'k':1}),'k')", True),
    ("bag_has_key(dynamic({'k':{'n':1}}),'$.k.n')", True),
    ("bag_has_key(dynamic({'k':1}),'z')", False),
    (
        "bag_merge(dynamic({'A1':12,'B1':2,'C1':3}), dynamic({'A2':81,'B2':82,'A1':1}))",
        {"A1": 12, "B1": 2, "C1": 3, "A2": 81, "B2": 82},
    ),
    ("tostring(bag_merge(dynamic({'z':null,'b':2}), dynamic({'b':3,'z':1,'a':4})))", '{"z":null,"b":2,"a":4}'),
    ("bag_remove_keys(dynamic({'a':1,'b':{'c':2}}), dynamic(['a']))", {"b": {"c": 2}}),
    ("tostring(bag_remove_keys(dynamic({'z':1,'b':2,'a':null}), dynamic(['q','b','b'])))", '{"z":1,"a":null}'),
    ("bag_remove_keys(parse_json('[1]'), dynamic(['q']))", None),
    ("bag_remove_keys(dynamic({'a':1}), dynamic(null))", {}),
    ("bag_set_key(dynamic({'k1':1}),'k2',2)", {"k1": 1, "k2": 2}),
    ("bag_set_key(dynamic({'k1':1,'k2':5}),'k1',3)", {"k1": 3, "k2": 5}),
    (
        "bag_zip(dynamic(['Id','Name','Color','Power']), dynamic([10,'Laser','Red',27]))",
        {"Id": 10, "Name": "Laser", "Color": "Red", "Power": 27},
    ),
    ("bag_zip(dynamic(['a','b']), dynamic([1]))", {"a": 1, "b": None}),
    ("tostring(bag_zip(dynamic(['z',5,'a','z']), dynamic([1,2,null,4])))", '{"z":1,"a":null}'),
    ("range(1,8,3)", [1, 4, 7]),
    ("range(1,4)", [1, 2, 3, 4]),
    (
        "range(datetime(2007-01-01), datetime(2007-01-03), 1d)",
        ["2007-01-01T00:00:00.0000000Z", "2007-01-02T00:00:00.0000000Z", "2007-01-03T00:00:00.0000000Z"],
    ),
    ("range(6h, 8h)", ["06:00:00", "07:00:00", "08:00:00"]),
    ("repeat(1,3)", [1, 1, 1]),
    ("repeat('a',2)", ["a", "a"]),
    ("set_difference(dynamic([1,2,3]), dynamic([2]), dynamic([3]))", [1]),
    ("set_intersect(dynamic([1,2,3,3]), dynamic([3]))", [3]),
    ("set_has_element(dynamic(['a','b']),'b')", True),
    ("set_has_element(dynamic([1,2]),2)", True),
    ("set_equals(dynamic([1,2]), dynamic([2,1,1]))", True),
    (
        ("array_reverse(array_reverse(array_reverse(array_reverse(array_reverse(array_reverse(dynamic([1,2])))))))"),
        [1, 2],
    ),
]
ROWS: list[tuple[str, list[Any]]] = [
    ("print set_union(dynamic([1,2,3]), dynamic([3,4])) | project array_sort_asc(print_0)", [[1, 2, 3, 4]]),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_functions_over_arrays_return_the_documented_values(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function over arrays, bags or sets returns the documented value."""
    (result,) = endpoint.query_rows(f"print x = {expression}")[0]
    assert type(result) is type(value)
    assert result == value


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_functions_over_arrays_return_the_documented_rows(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A function over arrays, bags or sets returns the documented rows."""
    assert endpoint.query_rows(text)[0] == row


@pytest.mark.parametrize("expression", ["repeat('x', 100000000000)", "range(1, 100000000000)", "range(1.5, 1e12, 0.5)"])
def test_arrays_have_a_maximum_length(endpoint: Endpoint, expression: str) -> None:
    """A function creates no more array elements than Kusto allows."""
    assert endpoint.query_rows(f"print n = array_length({expression})") == [[1048576]]


@pytest.mark.parametrize(("name", "length"), [("set_intersect", 4095), ("set_difference", 1)])
def test_the_comparisons_of_a_set_function_are_limited(endpoint: Endpoint, name: str, length: int) -> None:
    """A set function fails if it would compare more pairs of elements than DuckDB can compare in a short time."""
    assert endpoint.query_rows(f"print n = array_length({name}(range(1, 4096), range(1, 4095)))") == [[length]]
    error = endpoint.query_error(f"print n = array_length({name}(range(1, 10001), range(20001, 30000)))")
    assert f"{name}() of arrays with more than 100000000 pairs" in str(error)


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("bag_zip(k, k)", 20_000),
        ("bag_merge(bag_zip(k, k), bag_zip(array_reverse(k), k))", 20_000),
        ("bag_remove_keys(bag_zip(k, k), array_slice(k, 0, 9999))", 10_000),
        ("bag_remove_keys(bag_zip(k, k), array_concat(array_slice(k, 0, 9999), dynamic(['$.k1'])))", 10_000),
    ],
)
def test_functions_of_bags_do_not_compare_all_keys_with_each_other(
    endpoint: Endpoint, expression: str, count: int
) -> None:
    """A function of bags with thousands of keys does not compare each key with all others, which takes minutes."""
    source = "range x from 1 to 20000 step 1 | summarize k = make_list(strcat('k', x))"
    query = f"{source} | project n = array_length(bag_keys({expression}))"
    assert endpoint.query_rows(query, servertimeout=timedelta(seconds=20)) == [[count]]


def test_sql_for_nested_calls_grows_linearly(endpoint: Endpoint) -> None:
    """The length of the generated SQL grows linearly with the number of nested calls."""
    expression = "dynamic([1, 2])"
    for _ in range(24):
        expression = f"array_reverse({expression})"
    assert endpoint.query_rows(f"print x = {expression}") == [[[1, 2]]]


def test_a_column_may_have_a_name_of_the_generated_sql(endpoint: Endpoint) -> None:
    """A column may have a name that also occurs in the generated SQL."""
    query = "datatable(_i:dynamic, _e:long)[dynamic([7, 8]), 8] | project array_index_of(_i, _e), array_sum(_i)"
    assert endpoint.query_rows(query) == [[1, 15.0]]
