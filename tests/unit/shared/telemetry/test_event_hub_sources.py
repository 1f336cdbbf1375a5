"""Tests of the app setting for Event Hub sources."""

import logging

import pytest

from shared.telemetry.event_hub_sources import parse_event_hub_sources


def test_entries() -> None:
    """Each entry is a hub and a consumer group; duplicates are removed."""
    sources = parse_event_hub_sources(" press/$Default, oven-2/oi ,,press/$Default")
    assert [source.name for source in sources] == ["press/$Default", "oven-2/oi"]
    assert [source.function_name for source in sources] == ["ingest_press__Default", "ingest_oven_2_oi"]
    assert parse_event_hub_sources("") == ()


@pytest.mark.parametrize("entry", ["press", "press/", "/oi", "a/b/c", "pr ess/oi", "press/$Other", "oven.2/oi"])
def test_invalid_entries_are_skipped(entry: str, caplog: pytest.LogCaptureFixture) -> None:
    """A malformed entry, or one with a used function name, is logged and skipped."""
    with caplog.at_level(logging.ERROR, "workspace"):
        sources = parse_event_hub_sources(f"oven-2/oi,{entry}")
    assert [source.name for source in sources] == ["oven-2/oi"]
    assert len(caplog.records) == 1
