"""How a download is cut into parts that can be converted at the same time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.cold_data.reading import HourSummary
from shared.downloads.models import Format, Part
from shared.downloads.output_files import FILE_BYTES

PART_BYTES: Final = 1_000_000_000
"""Expected size of a part's files, which lie on the scratch disk together."""
PART_TIME: Final = timedelta(days=1)
"""The least that a part covers: whoever reads a part of the archive also looks a day before and after it."""
_ROW_BYTES: Final = {Format.CSV: 60, Format.JSONL: 120, Format.PARQUET: 0}
"""The least that a row takes beside its payload's own values."""


def plan_parts(
    connection: str, start: datetime, end: datetime, form: Format, list_hours: Sequence[HourSummary]
) -> list[Part]:
    """Return the parts of one connection: one, unless what is archived makes surely more than one file."""
    sizes = [max(stretch.size, stretch.rows * _ROW_BYTES[form]) for stretch in list_hours]
    made = [Part(connection=connection, start=start, end=end)]
    splits = sum(sizes) > FILE_BYTES
    for stretch, size in zip(list_hours, sizes, strict=True):
        last = made[-1]
        if splits and last.size + size > PART_BYTES and stretch.start - last.start >= PART_TIME:
            made[-1] = last.model_copy(update={"end": stretch.start})
            last = Part(connection=connection, start=stretch.start, end=end)
            made.append(last)
        sums = {"size": last.size + size, "unpacked": last.unpacked + stretch.unpacked}
        made[-1] = last.model_copy(update=sums)
    return made
