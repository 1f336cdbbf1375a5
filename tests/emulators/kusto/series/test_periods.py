"""Tests of the detection of periods."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

TRAFFIC = (
    "dynamic([80, 139, 87, 110, 68, 54, 50, 51, 53, 133, 86, 141, 97, 156, 94, 149, 95, 140, 77, 61, 50, 54, 47, 133, "
    "72, 152, 94, 148, 105, 162, 101, 160, 87, 63, 53, 55, 54, 151, 103, 189, 108, 183, 113, 175, 113, 178, 90, 71, "
    "62, 62, 65, 165, 109, 181, 115, 182, 121, 178, 114, 170])"
)


def test_periods_of_traffic(endpoint: Endpoint) -> None:
    """The known period of 14 points is found with the documented score; places without a period are 0."""
    table = endpoint.table(f"print y = {TRAFFIC} | project series_periods_detect(y, 0.0, 50.0, 2)")
    names = [each.column_name for each in table.columns]
    assert names == ["series_periods_detect_y_periods", "series_periods_detect_y_scores"]
    assert table.raw_rows == [[[14.0, 0.0], pytest.approx([0.84, 0.0], abs=0.005)]]
    assert endpoint.rows(f"print x = series_periods_detect({TRAFFIC}, 0.0, 50.0, 1)") == [[[14.0]]]


def test_given_periods_are_scored(endpoint: Endpoint) -> None:
    """A given period that occurs in the series has a high score; any other period has the score 0."""
    query = f"print y = {TRAFFIC} | project series_periods_validate(y, 14.0, 10.0, 3, 31)"
    assert endpoint.rows(query) == [[[14.0, 10.0, 3.0, 31.0], pytest.approx([0.84, 0, 0, 0], abs=0.005)]]
