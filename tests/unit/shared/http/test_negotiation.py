"""Which form a caller prefers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.http.negotiation import choose_media_type

OFFERED = ("application/json", "text/csv", "application/x")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/csv", "text/csv"),
        ("TEXT/CSV", "text/csv"),
        ("text/*", "text/csv"),
        ("text/csv;q=0.5, application/json;q=0.4", "text/csv"),
        ("text/csv;q=0.5, */*", "application/json"),
        ("application/json;q=0, */*", "text/csv"),
        ("application/*, application/json;q=0.1", "application/x"),
        ("image/png", "application/json"),
        ("text/csv;q=nonsense", "application/json"),
        ("text/csv; header=present; q=1, application/json", "application/json"),
    ],
)
def test_the_best_liked_form_wins(accept: str, expected: str) -> None:
    """Weights decide, a specific range over a general one, then the order in which forms are offered."""
    assert choose_media_type(accept, OFFERED) == expected


@given(st.text(max_size=50))
def test_any_header_leads_to_a_form(accept: str) -> None:
    """No header is an error."""
    assert choose_media_type(accept, OFFERED) in OFFERED
