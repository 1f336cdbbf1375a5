"""Tests of the filters in the query string of a live stream."""

import pytest

from shared.live_stream.filters import StreamFilters


@pytest.mark.parametrize("name", ["connection", "surface"])
def test_an_empty_stream_filter_counts_as_missing(name: str) -> None:
    """A filter parameter with an empty value counts as missing."""
    assert getattr(StreamFilters.model_validate({name: ""}), name) is None
    assert getattr(StreamFilters.model_validate({name: "rig"}), name) == "rig"
