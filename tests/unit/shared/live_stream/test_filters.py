"""What a listener asks for."""

import pytest

from shared.live_stream.filters import StreamFilters


@pytest.mark.parametrize("name", ["connection", "surface"])
def test_an_empty_filter_is_none(name: str) -> None:
    """A form's empty field asks for nothing."""
    assert getattr(StreamFilters.model_validate({name: ""}), name) is None
    assert getattr(StreamFilters.model_validate({name: "rig"}), name) == "rig"
