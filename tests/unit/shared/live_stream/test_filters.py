"""Tests of the filters in the query string of a live stream."""

import pytest
from pydantic import ValidationError

from shared.live_stream.filters import StreamFilters


@pytest.mark.parametrize("name", ["connection", "surface"])
def test_an_empty_stream_filter_is_rejected(name: str) -> None:
    """A filter with an empty value is rejected, because without the filter the stream would contain more impulses."""
    assert getattr(StreamFilters.model_validate({name: "rig"}), name) == "rig"
    with pytest.raises(ValidationError):
        StreamFilters.model_validate({name: ""})
