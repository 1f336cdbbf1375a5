"""Words that are keywords in one place and names in another."""

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
def test_rows(endpoint: Endpoint, text: str, row: list[Any]) -> None:
    """A title is a name outside of render, and a count where it is neither the operator nor called."""
    assert endpoint.rows(text)[0] == row
