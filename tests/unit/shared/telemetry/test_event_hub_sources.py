"""Tests of the setting `EVENT_HUB_SOURCES`."""

import pytest

from shared.telemetry.event_hub_sources import EventHubSource, parse_event_hub_sources


def test_each_entry_of_the_setting_is_an_event_hub_source() -> None:
    """Each entry of the setting is an Event Hub with a consumer group; blanks and duplicates are ignored."""
    sources = parse_event_hub_sources(" plant/$Default, line-1/oi ,,plant/$Default")
    assert sources == (EventHubSource("plant", "$Default"), EventHubSource("line-1", "oi"))
    assert [one.name for one in sources] == ["plant/$Default", "line-1/oi"]


def test_function_names_have_only_valid_characters() -> None:
    """In function names, underscores replace forbidden characters."""
    assert EventHubSource("line-1", "$Default").function_name == "ingest_line_1__Default"


@pytest.mark.parametrize("entry", ["plant", "/oi", "plant/", "plant/oi/x", "-plant/oi", "pl ant/oi"])
def test_an_invalid_event_hub_source_is_skipped(entry: str) -> None:
    """If an entry of the setting is invalid, the other entries are still read."""
    assert parse_event_hub_sources(f"{entry},good/oi") == (EventHubSource("good", "oi"),)


def test_function_names_are_unique() -> None:
    """If the function name that an entry would get is in use, the entry is skipped."""
    assert parse_event_hub_sources("a-b/oi,a.b/oi") == (EventHubSource("a-b", "oi"),)
