"""Tests of the known differences between the local engine and the KQL language service."""

import pytest

from scripts.kql_known_differences import KNOWN, is_column_difference_known, is_rejection_known


def test_each_difference_states_what_it_permits() -> None:
    """A known difference permits only that the engine rejects a query, or that the engine returns other columns."""
    assert [construct for construct, each in KNOWN.items() if each.rejected is None and each.columns is None] == []
    assert [construct for construct, each in KNOWN.items() if each.rejected and each.rejected.search("")] == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("T | where L == 'a'", "SEM0064 Cannot compare values of types long and string."),
        ("T | extend x = row_number()", "SEM0001 Function 'row_number' cannot be invoked in current context."),
        ("T | extend x = decimal(1.5.6)", "SYN0002 '1.5.6' is not a decimal"),
        ("T | extend x = iff(B, D, W)", "SEM0525 SEM0525: iff(): the values must be of the same type"),
    ],
)
def test_a_rejection_is_permitted_by_query_and_message(query: str, message: str) -> None:
    """A rejection by the engine is permitted only for the listed construct with the listed message."""
    assert is_rejection_known(query, message)
    assert not is_rejection_known(query, "SEM0100 Failed to resolve scalar expression named 'Nope'")
    assert is_rejection_known("T | take 1", message) is ("SEM0064" in message)


@pytest.mark.parametrize(
    ("query", "service", "engine", "permitted"),
    [
        ("T | project pow(R, 2)", [["R", "real"]], [["Column1", "real"]], True),
        ("T | project pow(R, 2), L", [["R", "real"], ["L", "long"]], [["Column1", "real"], ["L", "int"]], False),
        ("T | project R", [["R", "real"]], [["Column1", "real"]], False),
        ("T | project x = iff(B, J, L)", [["x", "long"]], [["x", "dynamic"]], True),
        ("T | project x = iff(B, L, L)", [["x", "long"]], [["x", "real"]], False),
        ("T | project x = iff(B, J, L)", [["x", "long"]], [["y", "dynamic"]], False),
        ("T | summarize countif(B)", [["countif_B", "long"]], [["countif_", "long"]], True),
        ("T | summarize countif(B)", [["countif_B", "long"]], [], False),
    ],
)
def test_only_the_columns_of_a_known_difference_may_differ(
    query: str, service: list[list[str]], engine: list[list[str]], *, permitted: bool
) -> None:
    """Different columns are permitted if each of them matches a known difference."""
    assert is_column_difference_known(query, service, engine) is permitted
