"""Tests of the function ``bin_auto`` and the request properties for it."""

from pathlib import Path

import httpx
import pytest

from tests.emulators.kusto.endpoints import Endpoint, end_process, start_emulator


def test_bins_of_bin_auto_have_the_requested_size_and_start(endpoint: Endpoint) -> None:
    """The bins of ``bin_auto`` have the size and the start that the request states; the column keeps its name."""
    query = (
        "set query_bin_auto_size=1h; set query_bin_auto_at=datetime(2017-01-01 00:05);"
        "range Timestamp from datetime(2017-01-01 00:05) to datetime(2017-01-01 02:00) step 1m"
        " | summarize count() by bin_auto(Timestamp)"
    )
    table = endpoint.query_table(query)
    assert [column.column_name for column in table.columns] == ["Timestamp", "count_"]
    assert table.raw_rows == [["2017-01-01T00:05:00.000000Z", 60], ["2017-01-01T01:05:00.000000Z", 56]]


def test_bins_of_bin_auto_begin_at_multiples_of_their_size_by_default(endpoint: Endpoint) -> None:
    """If the request states no start, the bins start at multiples of their size."""
    rows = endpoint.query_rows("set query_bin_auto_size=2; range x from 1 to 4 step 1 | project bin_auto(x)")
    assert rows == [[0], [2], [2], [4]]


@pytest.mark.parametrize(
    "query", ["print bin_auto(5)", "set query_bin_auto_size=2; print bin_auto()", "set query_bin_auto_size; print 1"]
)
def test_bin_auto_without_size_is_rejected(endpoint: Endpoint, query: str) -> None:
    """``bin_auto`` without a size or a value is rejected."""
    assert endpoint.query_error(query) is not None


def test_array_strcat_returns_the_same_text_as_strcat_array(endpoint: Endpoint) -> None:
    """``array_strcat`` returns the same text as ``strcat_array``."""
    assert endpoint.query_rows("print array_strcat(dynamic([1, 'a', null]), '-')") == endpoint.query_rows(
        "print strcat_array(dynamic([1, 'a', null]), '-')"
    )


def test_current_database_returns_the_name_of_the_database(tmp_path: Path) -> None:
    """``current_database()`` returns the name of the database that the emulator was started with."""
    options = ("--data", str(tmp_path), "--hub", str(tmp_path / "hub.sqlite"), "--database", "Plant's")
    running = start_emulator(tmp_path / "log", *options)
    try:
        request = {"csl": "print name = current_database()", "db": "Plant's"}
        reply = httpx.post(f"{running.url}/v2/rest/query", timeout=60, json=request).json()
    finally:
        end_process(running.process)
    assert [frame["Rows"] for frame in reply if frame.get("TableKind") == "PrimaryResult"] == [[["Plant's"]]]


def test_current_database_is_telemetry_by_default(endpoint: Endpoint) -> None:
    """Without a stated name, the name of the database is ``Telemetry``."""
    assert endpoint.query_rows("print current_database()") == [["Telemetry"]]
