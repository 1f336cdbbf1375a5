"""Tests of keywords as column names, functions over the columns of the input, and names of unnamed columns."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

ROWS: list[tuple[str, list[Any]]] = [
    ("print title='a' | extend n = strlen(title) | where title has 'a' | project title, n", ["a", 1]),
    ("datatable(title:string) ['a'] | summarize title = max(title)", ["a"]),
    ("print title='a' | render columnchart with (title='x')", ["a"]),
    ("range x from 1 to 3 step 1 | summarize count = count() by one = 1 | order by count desc | project count", [3]),
    ("print count = 5 | where count > 4 and count == 5 | extend more = count + 1 | project count, more", [5, 6]),
    ("let count = 5; print count", [5]),
    ("range x from 1 to 3 step 1 | count", [3]),
    ("range x from 1 to 3 step 1 | summarize count ()", [3]),
]


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_keywords_may_be_column_names(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """Keywords such as ``title`` and ``count`` can be column names where they have no other meaning."""
    assert endpoint.query_rows(text)[0] == row


COLUMN_ROWS: list[tuple[str, list[Any]]] = [
    (
        "print a=1 | extend b = column_ifexists('zz', 7), c = column_ifexists('a', 9) + 1, p = pack_all()",
        [1, 7, 2, {"a": 1}],
    ),
]


@pytest.mark.parametrize(("text", "row"), COLUMN_ROWS)
def test_column_functions_read_the_input_columns(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """``column_ifexists`` and ``pack_all`` refer to the columns of the operator's input."""
    assert endpoint.query_rows(text)[0] == row


@pytest.mark.parametrize(
    "text",
    [
        "Telemetry | project column_ifexists('Number', 0)",
        "Telemetry | project x = pack_all('text')",
        "Telemetry | project x = pack_all(1)",
    ],
)
def test_unsupported_column_functions_are_rejected(endpoint: Endpoint, text: str) -> None:
    """A function over columns whose result would differ from Data Explorer is rejected, and the error names it."""
    assert endpoint.query_error_code(text) == "BadRequest_NotSupported"


def test_pack_all_true_omits_empty_values(endpoint: Endpoint) -> None:
    """``pack_all(true)`` leaves out null and empty values."""
    rows = endpoint.query_rows("print a = '', b = 1, c = long(null), d = 'x' | project pack_all(true), pack_all(false)")
    assert rows == [[{"b": 1, "d": "x"}, {"a": "", "b": 1, "c": None, "d": "x"}]]


@pytest.mark.parametrize(
    "call",
    [
        "column_ifexists(timespan(1h), 1)",
        "column_ifexists(guid(74be27de-1e4e-49d9-b579-fe0b331d3642), 1)",
        "column_ifexists(Number, 1)",
        "column_ifexists(bool, 1)",
        "column_ifexists('Number', Nope)",
        "pack_all(DeviceId)",
        "current_principal_is_member_of(strcat_array(Nope, DeviceId))",
    ],
)
def test_column_names_must_be_string_literals(endpoint: Endpoint, call: str) -> None:
    """A column name must be a string literal; an unknown column is an error even if it is not used."""
    assert "SEM" in str(endpoint.query_error(f"Telemetry | project x = {call}"))


def test_the_name_of_a_column_can_be_a_constant_of_a_let_statement(endpoint: Endpoint) -> None:
    """The column name for ``column_ifexists`` may be a constant from a let statement."""
    assert endpoint.query_rows("let n = 'a'; print a = 3 | project x = column_ifexists(n, 1)") == [[3]]


NAMES = [
    # By the language service.
    ("dcount_hll(d)", ["dcount_hll_d"]),
    ("parse_xml(s)", ["s"]),
    ("series_fill_forward(d)", ["d"]),
    # Measured by the authors of the translator library, whatever the language service expects.
    ("strlen(s)", ["strlen_s"]),
    ("pow(x, 2)", ["Column1"]),
    ("exp10(x)", ["Column1"]),
    ("tolower(s)", ["Column1"]),
    # Two unnamed columns, and an expression that is no call.
    ("exp10(x), pow(x, 2)", ["Column1", "Column2"]),
    ("x + 1", ["Column1"]),
]


@pytest.mark.parametrize(("expression", "names"), NAMES)
def test_unnamed_columns_have_the_names_of_data_explorer(endpoint: Endpoint, expression: str, names: list[str]) -> None:
    """Unnamed columns have the names of Data Explorer, even if the KQL language service gives other names."""
    table = endpoint.query_table(f"print x = 1.5, s = 'a', d = dynamic([1]) | project {expression}")
    assert [column.column_name for column in table.columns] == names
