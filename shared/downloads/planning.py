"""Division of a download into parts that are converted in parallel."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.cold_data.reading import HourSummary
from shared.downloads.models import Format, Part
from shared.downloads.output_files import FILE_BYTES

PART_BYTES: Final = 1_000_000_000
"""Expected size of a part's files, which are on the scratch disk together."""
PART_TIME: Final = timedelta(days=1)
"""Minimum time range of a part, because reading a part also reads a day before and after it."""
_ROW_BYTES: Final = {Format.CSV: 60, Format.JSONL: 120, Format.PARQUET: 0}
"""Minimum size of a row in addition to the values of its payload."""


def plan_parts(
    connection: str, start: datetime, end: datetime, file_format: Format, hours: Sequence[HourSummary]
) -> list[Part]:
    """Return the parts of one connection: one, unless the archived rows certainly need several files."""
    sizes = [max(hour.size, hour.rows * _ROW_BYTES[file_format]) for hour in hours]
    parts = [Part(connection=connection, start=start, end=end)]
    splits = sum(sizes) > FILE_BYTES
    for hour, size in zip(hours, sizes, strict=True):
        last = parts[-1]
        if splits and last.size + size > PART_BYTES and hour.start - last.start >= PART_TIME:
            parts[-1] = last.model_copy(update={"end": hour.start})
            last = Part(connection=connection, start=hour.start, end=end)
            parts.append(last)
        sizes_of_part = {"size": last.size + size, "unpacked": last.unpacked + hour.unpacked}
        parts[-1] = last.model_copy(update=sizes_of_part)
    return parts
