"""Tests of content negotiation."""

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
def test_the_media_type_with_the_highest_weight_is_chosen(accept: str, expected: str) -> None:
    """The media type with the highest weight is chosen, then the most specific, then the first."""
    assert choose_media_type(accept, OFFERED) == expected


@given(st.text(max_size=50))
def test_every_header_selects_a_media_type(accept: str) -> None:
    """Each Accept header, also an invalid one, selects a media type."""
    assert choose_media_type(accept, OFFERED) in OFFERED
