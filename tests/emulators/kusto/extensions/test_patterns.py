"""Tests of the operator ``reduce`` and the plugins ``basket``, ``autocluster`` and ``diffpatterns``."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

FOO = "range x from 1 to 10 step 1 | project str = strcat('foo', 'Z', tostring(x))"
LEARNING = "range x from 1 to 1000 step 1 | project t = strcat('MachineLearningX', tostring(x % 10))"
CITIES = (
    "datatable(c:string)['San Bernard', 'San Diego', 'San Jose', 'Moscow', 'Moscow', 'Paris', 'Saint Lucy', "
    "'Saint Anna', 'x', '']"
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            f"{LEARNING} | reduce by t with threshold=0.001, characters = 'X'",
            [["MachineLearning*", 1000, "MachineLearningX0"]],
        ),
        (f"{FOO} | reduce by str", [["others", 10, ""]]),
        (f"{FOO} | reduce by str with characters='Z'", [["foo*", 10, "fooZ1"]]),
        (
            f"{CITIES} | reduce by c with threshold=0.15",
            [["San *", 3, "San Bernard"], ["others", 3, ""], ["Moscow", 2, "Moscow"], ["Saint *", 2, "Saint Anna"]],
        ),
        ("print c = 'a' | where false | reduce by c", []),
        (
            "datatable(c:string)['One -on- One', 'Two -on- Two', 'a'] | reduce by c",
            [["* -on- *", 2, "One -on- One"], ["others", 1, ""]],
        ),
    ],
)
def test_texts_with_frequent_words_share_a_pattern(
    endpoint: Endpoint, query: str, expected: list[list[object]]
) -> None:
    """Texts that share frequent words have one pattern; a text without such words has no pattern."""
    assert endpoint.query_rows(query) == expected


def test_reduce_with_kind_source_returns_rows_with_their_pattern(endpoint: Endpoint) -> None:
    """With ``kind=source``, each input row has its pattern."""
    query = "datatable(n:long, c:string)[1, 'error 12', 2, 'error 13', 3, 'stopped'] | reduce kind=source by c"
    table = endpoint.query_table(query)
    assert [column.column_name for column in table.columns] == ["n", "c", "Pattern", "Count", "Representative"]
    assert sorted(table.raw_rows) == [
        [1, "error 12", "error *", 2, "error 12"],
        [2, "error 13", "error *", 2, "error 12"],
        [3, "stopped", "others", 1, ""],
    ]


def test_reduce_over_too_many_texts_is_rejected(endpoint: Endpoint) -> None:
    """``reduce`` over more distinct texts than the limit is an error."""
    assert "more than 100000" in str(endpoint.query_error("range x from 1 to 100001 step 1 | reduce by tostring(x)"))


@pytest.mark.parametrize(
    "options", ["threshold=2", "threshold='a'", "characters=1", "nothing=1", "threshold=-0.1", "threshold=x"]
)
def test_wrong_pattern_options_are_rejected(endpoint: Endpoint, options: str) -> None:
    """An option with a wrong name or value is an error."""
    assert endpoint.query_error_code(f"{FOO} | reduce by str with {options}").startswith(
        ("General_BadRequest", "BadRequest")
    )


ROWS = (
    "let T = range x from 1 to 100 step 1 | extend a = iff(x <= 60, 'p', iff(x <= 90, 'q', strcat('r', x))), "
    "b = x % 2, c = iff(x <= 60, 1, x), s = iff(x <= 70, 'A', 'B'), w = 2; "
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "T | project a, b, c | evaluate basket(0.2)",
            [
                [0, 60, 60.0, "p", None, 1], [1, 30, 30.0, "p", 0, 1], [2, 30, 30.0, "p", 1, 1],
                [3, 50, 50.0, "", 0, None], [4, 50, 50.0, "", 1, None], [5, 30, 30.0, "q", None, None],
            ],
        ),
        (
            "T | project a, b | evaluate basket(0.45, '~', 1, '*', -1)",
            [[0, 60, 60.0, "p", -1], [1, 50, 50.0, "*", 0], [2, 50, 50.0, "*", 1]],
        ),
        ("T | project a, b, w | evaluate basket(0.55, w)", [[0, 120, 60.0, "p", None]]),
        ("T | project a, b, w | evaluate basket(0.55, 'w')", [[0, 120, 60.0, "p", None]]),
        ("T | where x > 100 | evaluate basket()", []),
        ("print a = 1, b = 'x', c = int(null) | evaluate autocluster()", [[0, 1, 100.0, 1, "x", None]]),
        (
            "T | project a, b, s | evaluate diffpatterns(s, 'A', 'B', '~', 0.6)",
            [[0, 60, 0, 85.71, 0.0, 85.71, "p", None]],
        ),
        ("T | project a, s | evaluate diffpatterns(s, 'A', 'nothing')", []),
    ],
)  # fmt: skip
def test_row_patterns_have_shared_values_and_wildcards(
    endpoint: Endpoint, query: str, expected: list[list[object]]
) -> None:
    """A pattern has the values that its rows share, and wildcards in place of all other values."""
    assert endpoint.query_rows(ROWS + query) == expected


def test_pattern_measures_precede_the_input_columns(endpoint: Endpoint) -> None:
    """The measures of a pattern precede the input columns; ``diffpatterns`` omits the split column."""
    table = endpoint.query_table(ROWS + "T | project a, s | evaluate diffpatterns(s, 'A', 'B')")
    assert [column.column_name for column in table.columns] == [
        "SegmentId", "CountA", "CountB", "PercentA", "PercentB", "PercentDiffAB", "a",
    ]  # fmt: skip


def test_the_size_weight_of_autocluster_prefers_larger_patterns(endpoint: Endpoint) -> None:
    """With a larger size weight, ``autocluster`` prefers patterns with more rows and fewer values."""
    query = "T | project a, b, c | evaluate autocluster({}) | take 1 | project Count"
    assert endpoint.query_rows(ROWS + query.format(1)) == [[60]]
    assert endpoint.query_rows(ROWS + query.format(0)) == [[30]]


@pytest.mark.parametrize(
    "call",
    [
        "basket(2)", "basket('a')", "basket(0.1, nothing)", "basket(0.1, '~', 0)", "basket(0.1, '~', 1, a)",
        "autocluster(-1)", "diffpatterns(s)", "diffpatterns('s', 'A', 'B')", "diffpatterns(nothing, 'A', 'B')",
    ],
)  # fmt: skip
def test_wrong_arguments_of_pattern_plugins_are_rejected(endpoint: Endpoint, call: str) -> None:
    """An argument outside its range, or an unknown column, is rejected."""
    assert endpoint.query_error(f"{ROWS} T | evaluate {call}") is not None
