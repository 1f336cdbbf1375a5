"""Tests of the hash of a query's text, which is part of signatures."""

import hashlib

import pytest

from shared.catalog.query_hash import compute_query_hash

QUERY = {"kql": "Telemetry | count", "parameters": [], "name": "First"}


def test_the_hash_of_a_query_is_computed_from_its_canonical_form() -> None:
    """The hash of a query is the SHA-256 of its RFC 8785 form, which other programs can compute."""
    canonical = b'{"kql":"Telemetry | count","parameters":[]}'
    assert compute_query_hash(QUERY) == hashlib.sha256(canonical).hexdigest()


@pytest.mark.parametrize(
    ("change", "is_equal"),
    [
        ({"name": "Second"}, True),
        ({"approval": {}}, True),
        ({"kql": "Telemetry |  count"}, False),
        ({"parameters": [{"name": "a"}]}, False),
    ],
)
def test_only_the_text_and_parameters_of_a_query_are_hashed(change: dict[str, object], *, is_equal: bool) -> None:
    """Changing the text or parameters of a query changes its hash; changing its name does not."""
    assert (compute_query_hash({**QUERY, **change}) == compute_query_hash(QUERY)) is is_equal


def test_a_large_integer_is_hashed_as_text() -> None:
    """A large integer is hashed as text, in the same form as in the audit event."""
    large, text = ({**QUERY, "parameters": [{"default": value}]} for value in (2**60, str(2**60)))
    assert compute_query_hash(large) == compute_query_hash(text)
