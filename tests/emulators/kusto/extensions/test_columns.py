"""Functions that look at which columns there are."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

ROWS: list[tuple[str, list[Any]]] = [
    (
        "print a=1 | extend b = column_ifexists('zz', 7), c = column_ifexists('a', 9) + 1, p = pack_all()",
        [1, 7, 2, {"a": 1}],
    ),
]


@pytest.mark.parametrize(("text", "row"), ROWS)
def test_rows(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A function of columns answers by those of its operator's input."""
    assert endpoint.rows(text)[0] == row


@pytest.mark.parametrize(
    "text",
    [
        "Telemetry | project column_ifexists('Number', 0)",
        "Telemetry | extend x = pack_all(true)",
    ],
)
def test_refused(endpoint: Endpoint, text: str) -> None:
    """What would be named or answered otherwise is refused by name."""
    assert endpoint.code(text) == "BadRequest_NotSupported"
