"""Tests of the blob names of the archive."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest

from shared.cold_data.names import (
    SequenceRange,
    build_batch_blob_name,
    build_batch_blob_name_after_hub_reset,
    build_connection_folder,
    build_hour_folder,
    build_merged_blob_name,
    floor_to_hour,
    folder_from_blob_name,
    hour_from_blob_name,
    is_merged_blob,
    iterate_blob_prefixes,
    sequence_range_from_blob_name,
)

HOUR = datetime(2026, 1, 5, 8, tzinfo=UTC)


def test_an_hour_is_parsed_from_its_folder_name() -> None:
    """An hour is parsed back from its folder name; the names sort by time."""
    for hour in (HOUR, datetime(7, 1, 2, 3, tzinfo=UTC)):
        name = build_hour_folder("rig", hour) + "x.parquet"
        assert hour_from_blob_name(name) == hour
        assert folder_from_blob_name(name) == build_hour_folder("rig", hour)
    assert hour_from_blob_name("impulses/rig/") is None


def test_the_hour_of_a_time_is_in_utc() -> None:
    """The hour of a time is in UTC, because some time zones differ from UTC by half an hour."""
    local = datetime(2026, 1, 5, 14, 10, 5, 7, timezone(timedelta(hours=5, minutes=30)))
    assert floor_to_hour(local) == HOUR


@pytest.mark.parametrize("connection", ["../other", "a/b", "", "ü", "x" * 65, "\ud800", "~" + "0" * 64])
def test_each_lookup_has_a_separate_folder(connection: str) -> None:
    """Each lookup (id in URLs) of a connection has a separate folder inside the archive's folder."""
    folder = build_connection_folder(connection)
    assert folder.count("/") == 2
    assert folder.startswith("impulses/~")
    assert folder != build_connection_folder(connection + "x")


def test_a_range_of_sequence_numbers_is_parsed_from_a_blob_name() -> None:
    """The range of sequence numbers is parsed from a blob's name, also after a hub reset."""
    run = SequenceRange("3", 7, 12)
    name = build_batch_blob_name(run)
    assert (
        sequence_range_from_blob_name(name)
        == sequence_range_from_blob_name(build_batch_blob_name_after_hub_reset(name, 5))
        == run
    )
    assert name < build_batch_blob_name(SequenceRange("3", 100, 101))


def test_a_merged_blob_sorts_after_its_sources() -> None:
    """The name of a merged blob does not depend on the order of its sources, and sorts after their names."""
    sources = [build_batch_blob_name(SequenceRange("0", number, number)) for number in range(3)]
    merged = build_merged_blob_name(sources)
    again = build_merged_blob_name([merged, sources[0]])
    assert merged == build_merged_blob_name(sources[::-1])
    assert all(earlier < later for earlier, later in pairwise([*sources, merged, again]))
    assert (is_merged_blob(merged), is_merged_blob(sources[0]), sequence_range_from_blob_name(merged)) == (
        True,
        False,
        None,
    )


@pytest.mark.parametrize(("days", "count", "by_month"), [(0.01, 1, False), (2, 3, False), (40, 2, True)])
def test_blob_prefixes_cover_each_hour_of_a_range(days: float, count: int, *, by_month: bool) -> None:
    """The prefixes of a range cover each of its hours; a long range has one prefix for each month."""
    end = HOUR + timedelta(days=days)
    prefixes = list(iterate_blob_prefixes("rig", HOUR, end))
    assert (len(prefixes), prefixes[0].count("/") == 4) == (count, by_month)
    hour = HOUR
    while hour < end:
        assert any(build_hour_folder("rig", hour).startswith(prefix) for prefix in prefixes)
        hour += timedelta(hours=1)


def test_a_range_over_ten_years_has_one_blob_prefix() -> None:
    """A range longer than ten years has one prefix, which covers all blobs of the connection."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    assert len(list(iterate_blob_prefixes("rig", start, datetime(2010, 1, 1, tzinfo=UTC)))) == 120
    assert list(iterate_blob_prefixes("rig", datetime.min.replace(tzinfo=UTC), HOUR)) == [
        build_connection_folder("rig")
    ]


def test_a_range_can_end_on_the_last_day_of_the_calendar() -> None:
    """A range can end on the last day of the calendar, after which no day follows."""
    end = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert list(iterate_blob_prefixes("rig", end - timedelta(hours=1), end)) == ["impulses/rig/9999/12/31/"]
