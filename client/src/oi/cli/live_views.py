"""Views of live telemetry in a terminal: a table of the newest values, or a small chart of one value."""

from bisect import insort
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from oi.cli.output import format_cell
from oi.control_characters import escape_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.table import Table

_BLOCKS = "▁▂▃▄▅▆▇█"
_POINTS = 60
"""Number of values of each device that the chart shows."""


class LiveTable:
    """Table with the newest message of each device."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], Mapping[str, Any]] = {}

    def add(self, message: "Mapping[str, Any]") -> None:
        """Add a telemetry message to the table, unless the table has a newer message of its device."""
        device = _get_connection_and_device(message)
        # Live messages can arrive between replayed ones, and a device can send its stored messages after an outage.
        if device not in self._newest or message["Timestamp"] >= self._newest[device]["Timestamp"]:
            self._newest[device] = message

    def build(self) -> "Table":
        """Build the table with one row for each device, and one column for each field of the payloads."""
        names = list(dict.fromkeys(name for message in self._newest.values() for name in message["Payload"]))
        rows = (
            (*device, message["Timestamp"][11:19], *(format_cell(message["Payload"].get(name)) for name in names))
            for device, message in sorted(self._newest.items())
        )
        return _build_table(("connection", "device", "time", *names), rows)


class LiveChart:
    """Chart of one field of the payload: for each device, a row of block characters for the last values.

    Args:
        field: name of the field; values that are not numbers, or outside the range of a double, are left out.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._values: dict[tuple[str, str], list[tuple[str, float]]] = {}
        self._fields: set[str] = set()

    def add(self, message: "Mapping[str, Any]") -> None:
        """Add the value of a message to the chart of its device; the values are ordered by time."""
        self._fields |= message["Payload"].keys()
        value = message["Payload"].get(self._field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                return
            values = self._values.setdefault(_get_connection_and_device(message), [])
            insort(values, (message["Timestamp"], number), key=itemgetter(0))
            del values[:-_POINTS]

    def build(self) -> "Table":
        """Build the table with the lowest, highest and newest value of each device, and a chart of its values."""
        numbers = {device: [value for _, value in values] for device, values in sorted(self._values.items())}
        rows = (
            (*device, *(f"{each:.6g}" for each in (min(values), max(values), values[-1])), draw_block_chart(values))
            for device, values in numbers.items()
        )
        table = _build_table(("connection", "device", "lowest", "highest", "newest", self._field), rows)
        if self._fields and not self._values:
            names = ", ".join(sorted(self._fields))
            table.caption = escape_controls(
                f"No message has a number in this field that the chart can draw. Fields: {names}."
            )
        return table


def draw_block_chart(values: "Sequence[float]") -> str:
    """Draw numbers as a line of block characters; the lowest number has the smallest block."""
    # Half of each value, because the difference of two finite numbers can be infinite.
    low = min(values) / 2
    height = max(values) / 2 - low
    if not height:
        return _BLOCKS[0] * len(values)
    last = len(_BLOCKS) - 1
    return "".join(_BLOCKS[round((value / 2 - low) / height * last)] for value in values)


def _get_connection_and_device(message: "Mapping[str, Any]") -> tuple[str, str]:
    """Return the pair of connection and device to which a telemetry message belongs."""
    return message["Metadata"]["ConnectionLookup"], message["Subject"]


def _build_table(column_names: "Sequence[str]", rows: "Iterable[Sequence[str]]") -> "Table":
    from rich.table import Table  # noqa: PLC0415  slow to load
    from rich.text import Text  # noqa: PLC0415  as above

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in column_names:
        table.add_column(Text(escape_controls(name)))
    for row in rows:
        table.add_row(*(Text(escape_controls(cell)) for cell in row))
    return table
