"""Tests of the operator ``search``."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ('search in (Devices) "dev-03" | count', 1),
        ('search in (Devices, Tele*) "dev-03" | count', 101),
        ('search "dev-03" | summarize by $table | count', 2),
        ("search in (Devices) * | count", 5),
        ('search in (Devices) Model:"a" | count', 3),
        ('search kind=case_sensitive in (Devices) Model:"a" | count', 0),
        ('search kind=case_sensitive in (Devices) Model has "a" | count', 0),
        ('search in (Devices) Model has "a" | count', 3),
        ('Devices | search "dev*" and not("dev-03") | count', 4),
        ('Devices | search "*03" or Model == "A" | count', 4),
        ('Devices | search "*v-0*" | count', 5),
        ('Devices | search "d*03" | count', 1),
        ('Devices | search "ev" | count', 0),
        ("let m = 'B'; Devices | search Model == m | count", 2),
        ('search in (Telemetry) "1003" | count', 2),
    ],
)
def test_the_operator_search_matches_whole_words(endpoint: Endpoint, query: str, count: int) -> None:
    """A search term matches whole words in any column; a star matches any characters."""
    assert endpoint.query_rows(query) == [[count]]


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("true", [[1]]),
        ("FALSE", [[2]]),
        ("fal*", [[2]]),
        ("NaN", [[1]]),
        ("inf", [[2]]),
        ("00:01:00", [[1]]),
        ("74be27de", [[2]]),
    ],
)
def test_the_operator_search_finds_values_of_every_type(endpoint: Endpoint, term: str, found: list[list[int]]) -> None:
    """A search term is compared with the text form of values of every type, such as ``True`` of a bool."""
    query = (
        "let T = datatable(n:long, ok:bool, r:real, t:timespan, g:guid)[1, true, real(nan), 1m, guid(null), "
        "2, false, real(+inf), 1h, guid(74be27de-1e4e-49d9-b579-fe0b331d3642)];"
    )
    assert endpoint.query_rows(f'{query} search in (T) "{term}" | project n') == found


@pytest.mark.parametrize(
    "term", ["True", "fals*", "*rue", "x", "nan", "inf", "*e+2*", "e", "t*", "*Z", "2026*", "05T10", "1e", "7"]
)
def test_the_operator_search_equals_a_search_in_the_text_of_each_column(endpoint: Endpoint, term: str) -> None:
    """A term is found in exactly the rows in which the text form of some column contains it, whatever the type."""
    table = (
        "let T = datatable(n:long, b:bool, r:real, s:timespan, d:datetime, j:dynamic, x:string)["
        "7, true, real(1e20), 7h, datetime(2026-01-05T10:00:00Z), dynamic(['x', true]), 'e', "
        "8, false, real(nan), 1s, datetime(2026-02-05), dynamic(null), 'inf', "
        "9, bool(null), real(-inf), 2d, datetime(null), dynamic({'a': 'nan'}), '1e'];"
    )
    operator = "contains" if term[0] == term[-1] == "*" else "hassuffix" if term[0] == "*" else "hasprefix"
    operator = operator if "*" in term else "has"
    texts = " or ".join(f"tostring({name}) {operator} '{term.strip('*')}'" for name in "nbrsdjx")
    expected = endpoint.query_rows(f"{table} T | where {texts} | project n | sort by n asc")
    assert endpoint.query_rows(f'{table} search in (T) "{term}" | project n | sort by n asc') == expected


def test_the_operator_search_returns_the_table_name_as_first_column(endpoint: Endpoint) -> None:
    """The first column of a search is the name of the row's table."""
    table = endpoint.query_table('Devices | search "dev-03"')
    assert [column.column_name for column in table.columns] == ["$table", "DeviceId", "Model"]
    assert table.raw_rows == [["Devices", "dev-03", "B"]]
