"""A download is cut where there is surely more than one file."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cold_data.reading import HourSummary
from shared.downloads.models import Format
from shared.downloads.output_files import FILE_BYTES
from shared.downloads.planning import PART_BYTES, PART_TIME, plan_parts
from tests.unit.shared.downloads.plant import HOUR, START

END = START + 100 * HOUR


@pytest.mark.parametrize("form", list(Format))
@given(sizes=st.lists(st.integers(0, 400_000_000), max_size=40))
def test_parts_cover_the_range_without_gaps(form: Format, sizes: list[int]) -> None:
    """The parts follow each other from start to end, and no more is put together than a file should hold."""
    list_hours = [HourSummary(START + number * HOUR, 0, size) for number, size in enumerate(sizes)]
    planned = plan_parts("pump", START + timedelta(minutes=5), END, form, list_hours)
    assert planned[0].start == START + timedelta(minutes=5)
    assert planned[-1].end == END
    assert all(one.end == following.start for one, following in pairwise(planned))
    assert all(part.start < part.end for part in planned)
    if sum(sizes) <= FILE_BYTES:
        assert len(planned) == 1
    for part in planned[:-1]:
        assert part.end - part.start >= PART_TIME
    for part in planned:
        late = [each.size for each in list_hours if part.start + PART_TIME <= each.start < part.end]
        assert not late or sum(late) <= PART_BYTES


def test_rows_count_where_the_archive_is_small() -> None:
    """A row takes its text in CSV and JSON Lines, however well the archive compresses it."""
    list_hours = [HourSummary(START + number * 24 * HOUR, 6_000_000, 1) for number in range(10)]
    end = START + 240 * HOUR
    assert len(plan_parts("pump", START, end, Format.PARQUET, list_hours)) == 1
    assert len(plan_parts("pump", START, end, Format.CSV, list_hours)) == 5
    assert len(plan_parts("pump", START, end, Format.JSONL, list_hours)) == 10
