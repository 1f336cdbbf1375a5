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


def test_the_operator_search_returns_the_table_name_as_first_column(endpoint: Endpoint) -> None:
    """The first column of a search is the name of the row's table."""
    table = endpoint.query_table('Devices | search "dev-03"')
    assert [column.column_name for column in table.columns] == ["$table", "DeviceId", "Model"]
    assert table.raw_rows == [["Devices", "dev-03", "B"]]
