"""Planning: a download is divided if it certainly needs several files."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cold_data.reading import HourSummary
from shared.downloads.models import Format
from shared.downloads.output_files import FILE_BYTES
from shared.downloads.planning import PART_BYTES, PART_TIME, plan_parts
from tests.unit.shared.downloads.environment import HOUR, START

END = START + 100 * HOUR


@pytest.mark.parametrize("form", list(Format))
@given(sizes=st.lists(st.integers(0, 400_000_000), max_size=40))
def test_parts_cover_the_range_without_gaps(form: Format, sizes: list[int]) -> None:
    """The parts are adjacent from start to end, and no part exceeds the expected size."""
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


def test_rows_count_if_the_archive_is_compressed_well() -> None:
    """Rows have a minimum size in CSV and JSON Lines, independent of the compression of the archive."""
    list_hours = [HourSummary(START + number * 24 * HOUR, 6_000_000, 1) for number in range(10)]
    end = START + 240 * HOUR
    assert len(plan_parts("pump", START, end, Format.PARQUET, list_hours)) == 1
    assert len(plan_parts("pump", START, end, Format.CSV, list_hours)) == 5
    assert len(plan_parts("pump", START, end, Format.JSONL, list_hours)) == 10
