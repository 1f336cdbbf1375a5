"""Tests of the layout of messages: the pointers to time and ids, and their formats."""

import pytest

from shared.catalog.models import Source, TimestampFormat
from shared.telemetry.layout import DEFAULT_LAYOUT, layout_from_source, validate_message_or_device_id


def test_pointers_of_equal_connections_are_parsed_once() -> None:
    """Connections with equal source definitions share one layout, so that pointers are parsed once."""
    source = Source.model_validate({"timestampPointer": "/meta/ts", "timestampFormat": "epochMilliseconds"})
    layout = layout_from_source(source)
    assert (layout.timestamp, layout.timestamp_format) == (("meta", "ts"), TimestampFormat.EPOCH_MILLISECONDS)
    assert layout_from_source(source.model_copy()) is layout is not DEFAULT_LAYOUT


@pytest.mark.parametrize("value", ["a", "ü" * 256])
def test_a_text_of_at_most_the_maximum_length_is_an_id(value: str) -> None:
    """An id is a text with at most the maximum number of characters (not bytes)."""
    assert validate_message_or_device_id(value) == value


@pytest.mark.parametrize("value", ["", "a" * 257, 7, None, ["a"]])
def test_numbers_are_not_ids(value: object) -> None:
    """Numbers are rejected as ids, because 1 and 1.0 would be the same device."""
    with pytest.raises(ValueError, match="string of 1 to 256 characters"):
        validate_message_or_device_id(value)
