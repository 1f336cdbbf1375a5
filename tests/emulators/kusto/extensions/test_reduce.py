"""Tests of the operator ``reduce``, with the documented results."""

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
def test_patterns(endpoint: Endpoint, query: str, expected: list[list[object]]) -> None:
    """Texts that share frequent words have one pattern; a text without such words has no pattern."""
    assert endpoint.rows(query) == expected


def test_rows_with_patterns(endpoint: Endpoint) -> None:
    """With ``kind=source`` the result has the input rows, each with its pattern."""
    query = "datatable(n:long, c:string)[1, 'error 12', 2, 'error 13', 3, 'stopped'] | reduce kind=source by c"
    table = endpoint.table(query)
    assert [column.column_name for column in table.columns] == ["n", "c", "Pattern", "Count", "Representative"]
    assert sorted(table.raw_rows) == [
        [1, "error 12", "error *", 2, "error 12"],
        [2, "error 13", "error *", 2, "error 12"],
        [3, "stopped", "others", 1, ""],
    ]


def test_too_many_texts(endpoint: Endpoint) -> None:
    """``reduce`` over more distinct texts than the limit is an error."""
    assert "more than 100000" in str(endpoint.error("range x from 1 to 100001 step 1 | reduce by tostring(x)"))


@pytest.mark.parametrize(
    "options", ["threshold=2", "threshold='a'", "characters=1", "nothing=1", "threshold=-0.1", "threshold=x"]
)
def test_wrong_options(endpoint: Endpoint, options: str) -> None:
    """An option with a wrong name or value is an error."""
    assert endpoint.code(f"{FOO} | reduce by str with {options}").startswith(("General_BadRequest", "BadRequest"))
