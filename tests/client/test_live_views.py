"""Tests of the terminal views of live telemetry."""

from typing import Any

import pytest
from oi.cli.live_views import LiveChart, LiveTable, draw_block_chart
from rich.console import Console


def build_message(device: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    """Return a live message that was measured at this second."""
    return {
        "Timestamp": f"2026-01-05T08:00:{second:02d}.000000Z",
        "Subject": device,
        "Metadata": {"ConnectionLookup": "press"},
        "Payload": payload,
    }


def render_lines(view: LiveTable | LiveChart) -> list[list[str]]:
    """Return the lines of a view, each as a list of words."""
    console = Console(width=200)
    with console.capture() as text:
        console.print(view.build())
    return [line.split() for line in text.get().splitlines()]


def test_the_table_has_the_newest_message_of_each_device() -> None:
    """A new message of a device replaces the device's row in the table; a new field adds a column."""
    table = LiveTable()
    for message in (build_message("b", x=1), build_message("a", x=2), build_message("b", x=3, y=True)):
        table.add(message)
    assert render_lines(table) == [
        ["connection", "device", "time", "x", "y"],
        ["press", "a", "08:00:00", "2"],
        ["press", "b", "08:00:00", "3", "yes"],
    ]


def test_the_table_ignores_a_message_that_is_older_than_the_shown_one() -> None:
    """A replayed message that arrives after a newer live message of its device does not replace it."""
    table = LiveTable()
    for second, value in ((5, 1), (2, 2)):
        table.add(build_message("a", second, x=value))
    assert render_lines(table)[1] == ["press", "a", "08:00:05", "1"]


def test_the_chart_draws_the_last_values_of_each_device() -> None:
    """The chart draws the last 60 numbers of each device and ignores values that are not numbers or are too large."""
    chart = LiveChart("x")
    for value in (0, "text", None, True, 7, 10**400, 3.5):
        chart.add(build_message("a", x=value))
    chart.add(build_message("silent", y=1))
    assert render_lines(chart) == [
        ["connection", "device", "lowest", "highest", "newest", "x"],
        ["press", "a", "0", "7", "3.5", "▁█▅"],
    ]
    for value in range(100):
        chart.add(build_message("a", x=value))
    assert render_lines(chart)[1][2:5] == ["40", "99", "99"]


def test_the_chart_draws_values_in_the_order_of_their_times() -> None:
    """The newest value is the one with the latest time, and the chart has the 60 values with the latest times."""
    chart = LiveChart("x")
    for second in (59, 1, 0):
        chart.add(build_message("a", second, x=second))
    assert render_lines(chart)[1] == ["press", "a", "0", "59", "59", "▁▁█"]
    for second in range(2, 60):
        chart.add(build_message("a", second, x=second))
    assert render_lines(chart)[1][2:5] == ["1", "59", "59"]


def test_a_chart_of_a_field_without_numbers_lists_the_fields() -> None:
    """If a field has no numbers, its chart lists the fields that exist."""
    chart = LiveChart("z")
    assert render_lines(chart)[1:] == []
    chart.add(build_message("a", y="text", x=1, z=10**400))
    words = [word for line in render_lines(chart) for word in line]
    assert words[-9:] == ["that", "the", "chart", "can", "draw.", "Fields:", "x,", "y,", "z."]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0], "▁"), ([2.0, 2.0], "▁▁"), ([-1e308, 1e308], "▁█"), ([0.0, 5e-324], "▁▁")],
)
def test_a_terminal_chart_can_draw_numbers_of_any_size(values: list[float], expected: str) -> None:
    """A chart can draw equal, very large and very small numbers."""
    assert draw_block_chart(values) == expected
