"""Tests that the shorter SQL for expressions of known types gives correct results."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint

ROWS = (
    "datatable(i:long, n:long, s:string, d:dynamic)"
    "[1,5,'a',dynamic('a'), 2,long(null),'b',dynamic('b'), 3,7,'',dynamic(1)]"
)


@pytest.mark.parametrize(
    ("condition", "expected_rows"),
    [
        ("n == 5", [1]),
        ("n != 5", [2, 3]),
        ("not(n == 5)", [2, 3]),
        ("(n == 5) == false", [2, 3]),
        ("n == 5 or s == 'b'", [1, 2]),
        ("n in (5, 7) and s == 'a'", [1]),
        ("n !in (5)", [2, 3]),
        ("not(n in (5))", [2, 3]),
        ("d == 'a'", [1]),
        ("d has 'b' and s has 'b'", [2]),
        ("isnull(n) == true", [2]),
    ],
)
def test_comparisons_with_null_are_false_in_filters(
    endpoint: Endpoint, condition: str, expected_rows: list[int]
) -> None:
    """In a filter, a comparison with null is false and its negation is true."""
    rows = endpoint.query_rows(f"{ROWS} | where {condition} | project i | order by i asc")
    assert [row[0] for row in rows] == expected_rows


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("extend DeviceId = Payload.tags[0] | where DeviceId == 't1' | project DeviceId", ["t1"]),
        (
            "project DeviceId = Payload.tags[0] | where DeviceId has 't1' | extend x = tostring(DeviceId) | project x",
            ["t1"],
        ),
        ("mv-expand DeviceId = Payload.tags | where DeviceId == 't1' | project tostring(DeviceId)", ["t1"]),
        ("project-rename Old = DeviceId | extend DeviceId = Payload | project strlen(tostring(DeviceId.tags[0]))", [2]),
        ("project-away DeviceId | project-rename DeviceId = Payload | where DeviceId has 't1' | project Number", [1]),
        (
            "where DeviceId == 'dev-01' and DeviceId has 'dev' | project strlen(DeviceId), tostring(DeviceId)",
            [6, "dev-01"],
        ),
        (
            "summarize DeviceId = make_list(DeviceId) | where DeviceId has 'dev-01' | project x = DeviceId[0]",
            ["dev-01"],
        ),
        (
            "join kind=inner (Devices | project DeviceId) on DeviceId | where DeviceId1 == 'dev-01' | project Number",
            [1],
        ),
        ("as T | extend DeviceId = Payload | where DeviceId has 't1' | project Number", [1]),
    ],
)
def test_a_text_column_may_get_a_dynamic_value(endpoint: Endpoint, query: str, row: list[object]) -> None:
    """An operator can assign a dynamic value to the name of a text column."""
    assert endpoint.query_rows(f"Telemetry | where Number == 1 | {query}") == [row]


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("extend s = strcat('n', n % 3) | summarize by s", ["n", "n1", "n2"]),
        ("extend s = strcat(n * -1 - i, '|', n) | project s", ["-10|7", "-6|5", "|"]),
        ("extend s = tostring(n) | summarize by s", ["", "5", "7"]),
        ("extend s = strcat('a', i) | extend s = d | project tostring(s)", ["1", "a", "b"]),
        ("extend s = strcat('a', i) | extend s = i * 0.5 | project tostring(s)", ["0.5", "1.0", "1.5"]),
        ("extend s = strcat('a', i) | summarize s = make_list(i) | project tostring(s)", ["[1,2,3]"]),
        ("extend s = strcat('a', i) | project-rename t = s | extend s = i | summarize by t", ["a1", "a2", "a3"]),
    ],
)
def test_computed_texts_are_empty_for_null(endpoint: Endpoint, query: str, values: list[str]) -> None:
    """A computed text is empty for null, and a later operator can assign another type to its column."""
    assert sorted(row[0] for row in endpoint.query_rows(f"{ROWS} | {query}")) == values
