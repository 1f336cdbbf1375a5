"""How a download is cut into parts that can be converted at the same time."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from shared.cold_data.reading import Stretch
from shared.downloads.models import Format, Part
from shared.downloads.output import FILE_BYTES

PART_BYTES: Final = FILE_BYTES // 2
"""Expected size of a part's file; half of what is allowed, since the expectation may be wrong by much."""
_ROW_BYTES: Final = {Format.CSV: 60, Format.JSONL: 120, Format.PARQUET: 0}
"""The least that a row takes beside its payload's own values."""


def parts(connection: str, start: datetime, end: datetime, form: Format, stretches: Sequence[Stretch]) -> list[Part]:
    """Return the parts of one connection: one, unless what is archived makes surely more than one file."""
    sizes = [max(stretch.size, stretch.rows * _ROW_BYTES[form]) for stretch in stretches]
    cuts = _cuts(stretches, sizes) if sum(sizes) > FILE_BYTES else []
    bounds = [start, *cuts, end]
    return [Part(connection=connection, start=first, end=last) for first, last in pairwise(bounds)]


def _cuts(stretches: Sequence[Stretch], sizes: Sequence[int]) -> list[datetime]:
    cuts: list[datetime] = []
    gathered = 0
    for stretch, size in zip(stretches, sizes, strict=True):
        if gathered and gathered + size > PART_BYTES:
            cuts.append(stretch.start)
            gathered = 0
        gathered += size
    return cuts
