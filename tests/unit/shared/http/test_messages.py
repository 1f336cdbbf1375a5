"""Tests of requests."""

import pytest

from shared.http.messages import Request


def test_the_query_string_is_parsed_once() -> None:
    """The query string of a request is parsed once, however often its parameters are read."""
    request = Request("GET", "/", "a=1&a=2&b=", {}, b"")
    assert request.query_pairs == (("a", "1"), ("a", "2"), ("b", ""))
    assert request.query_pairs is request.query_pairs


def test_the_error_about_a_query_string_that_is_not_utf_8_states_the_rule() -> None:
    """The error about percent-encoded bytes that are not UTF-8 states the rule in the API's wording."""
    with pytest.raises(ValueError, match="percent-encoded characters must be UTF-8"):
        assert Request("GET", "/", "a=%FF", {}, b"").query_pairs
