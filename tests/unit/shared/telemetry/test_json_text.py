"""Tests of parsing and serialising JSON without loss."""

import pytest
from hypothesis import given

from shared.telemetry.json_text import parse_lossless_json, serialise_lossless_json
from tests.unit.shared.telemetry.json_values import JSON


@given(JSON)
def test_any_json_value_is_parsed_back(value: object) -> None:
    """Any JSON value that is serialised and parsed is unchanged, with integers beyond 64 bits."""
    again = parse_lossless_json(serialise_lossless_json(value))
    assert again == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize("digits", ["18446744073709551616", "-9223372036854775809", "1" * 60, "-" + "9" * 19])
def test_large_integers_are_exact(digits: str) -> None:
    """Integers with any number of digits are parsed and serialised exactly."""
    assert serialise_lossless_json(parse_lossless_json(f'{{"n":{digits}}}'.encode())) == f'{{"n":{digits}}}'.encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"NaN",
        b"1e400",
        b'"\\ud800"',
        b"\xff",
        b"[NaN,18446744073709551616]",
        b"[1e400,18446744073709551616]",
        b'["\\ud800",18446744073709551616]',
        b"1" * 5000,
        b"[" * 200_000 + b"18446744073709551616" + b"]" * 200_000,
        b"[" * 5000 + b"]" * 5000,
    ],
)
def test_invalid_texts_are_rejected(text: bytes) -> None:
    """A text that is not JSON, or that cannot be represented exactly, raises a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011  the kind is the contract, the words are the parser's
        parse_lossless_json(text)


def test_deep_values_can_be_serialised() -> None:
    """A parsed value can be serialised, even if it is deeper than the fast serialiser allows."""
    text = b"[" * 900 + b"]" * 900
    assert serialise_lossless_json(parse_lossless_json(text)) == text


@pytest.mark.parametrize("value", [{"a": object()}, {"a": "\ud800"}, {1, 2}, [2**70, float("nan")]])
def test_values_without_json_form_are_rejected(value: object) -> None:
    """A value that has no JSON form raises a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011  see above
        serialise_lossless_json(value)


def test_an_integer_has_at_most_4300_digits() -> None:
    """Integers over 4,300 digits are rejected, because converting them takes quadratic time."""
    assert parse_lossless_json(b"1" * 4300) == int("1" * 4300)
    with pytest.raises(ValueError, match="4300"):
        parse_lossless_json(b"1" * 4301)
