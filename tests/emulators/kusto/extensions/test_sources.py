"""Tests of the source ``range``."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint


@pytest.mark.parametrize(
    ("bounds", "kind", "values"),
    [
        ("1 to 5 step 2", "long", [1, 3, 5]),
        ("5 to 1 step -2", "long", [5, 3, 1]),
        ("5 to 1 step 1", "long", []),
        ("1.0 to 2.0 step 0.25", "real", [1.0, 1.25, 1.5, 1.75, 2.0]),
        ("1h to 2h step 30m", "timespan", ["01:00:00", "01:30:00", "02:00:00"]),
        (
            "datetime(2024-01-01) to datetime(2024-01-02) step 12h",
            "datetime",
            ["2024-01-01T00:00:00.000000Z", "2024-01-01T12:00:00.000000Z", "2024-01-02T00:00:00.000000Z"],
        ),
        ("bin(1h, 30m) to 2h step 30m", "timespan", ["01:00:00", "01:30:00", "02:00:00"]),
        (
            "bin(datetime(2024-01-01), 1d) - 12h to bin(datetime(2024-01-01), 1d) step 12h",
            "datetime",
            ["2023-12-31T12:00:00.000000Z", "2024-01-01T00:00:00.000000Z"],
        ),
        (
            "toscalar(print datetime(2024-01-01)) to toscalar(print datetime(2024-01-01)) step 12h",
            "datetime",
            ["2024-01-01T00:00:00.000000Z"],
        ),
        ("n to 3 * n step n", "long", [2, 4, 6]),
    ],
)
def test_range(endpoint: Endpoint, bounds: str, kind: str, values: list[Any]) -> None:
    """A range has the type of its bounds and the values from the start to the stop."""
    table = endpoint.table(f"let n = 2; range x from {bounds}")
    assert [column.column_type for column in table.columns] == [kind]
    assert table.raw_rows == [[value] for value in values]


@pytest.mark.parametrize(
    "bounds",
    [
        "1 to 5 step 0",
        "1h to 2h step 0s",
        "datetime(2024-01-01) to datetime(2024-01-02) step 0s",
        "1 to 1000000000000 step 1",
        "1.0 to 2.0 step 0.0",
        "1 to 2 step 0.5",
        "datetime(2000-01-01) to datetime(2024-01-01) step 1microsecond",
    ],
)
def test_invalid_ranges(endpoint: Endpoint, bounds: str) -> None:
    """A range with step zero, too many rows or mixed types is rejected."""
    assert "EMB0001" in str(endpoint.error(f"range x from {bounds} | count"))
