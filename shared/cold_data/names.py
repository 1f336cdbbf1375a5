"""How blobs of the archive are called: by connection, hour, and the place of their rows in the hub."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ROOT = "impulses"
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HOUR = re.compile(r"(\d{4})/(\d\d)/(\d\d)/(\d\d)")
_SEQUENCE = 20
_NUMBER = rf"\d{{{_SEQUENCE}}}"
_RAW = re.compile(rf"(?P<partition>[A-Za-z0-9~]+)-(?P<first>{_NUMBER})-(?P<last>{_NUMBER})(?:-\d+)?\.parquet")
_MERGED = re.compile(r"merged-\d{6}-[0-9a-f]{32}\.parquet")


@dataclass(frozen=True, slots=True)
class SequenceRange:
    """A stretch of a partition that a blob holds every row of, as far as they belong to its connection and hour."""

    partition: str
    first: int
    last: int


def floor_to_hour(instant: datetime) -> datetime:
    """Return the hour, UTC, that an instant lies in."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def connection_folder(connection: str) -> str:
    """Return the prefix of all blobs of a connection; no two connections share one."""
    return f"{ROOT}/{_segment(connection)}/"


def hour_folder(connection: str, hour: datetime) -> str:
    """Return the prefix of the blobs of a connection and hour."""
    # strftime leaves the zeros before years under 1000 out.
    return f"{connection_folder(connection)}{hour.year:04d}/{hour:%m/%d/%H}/"


def hour_from_name(name: str) -> datetime | None:
    """Return the hour that a blob belongs to, None for a name that is none of the archive's."""
    found = _HOUR.search(name)
    if found is None:
        return None
    year, month, day, hour = map(int, found.groups())
    return datetime(year, month, day, hour, tzinfo=UTC)


def folder_from_name(name: str) -> str:
    """Return the prefix of the connection and hour that a blob belongs to."""
    return name[: name.rindex("/") + 1]


def batch_name(run: SequenceRange) -> str:
    """Return what a trigger batch's blob is called, below its hour; the same each time the batch is delivered."""
    return f"{_partition(run.partition)}-{run.first:0{_SEQUENCE}d}-{run.last:0{_SEQUENCE}d}.parquet"


def batch_name_after_reset(name: str, enqueued: int) -> str:
    """Return the name for a batch from a hub that began anew and repeats its numbers."""
    return f"{name.removesuffix('.parquet')}-{enqueued}.parquet"


def merged_name(sources: list[str]) -> str:
    """Return what the blob merged from others is called, below its hour; it sorts behind each of them."""
    generation = 1 + max((int(source.split("-")[1]) for source in sources if is_merged(source)), default=0)
    digest = hashlib.sha256("\n".join(sorted(sources)).encode()).hexdigest()[:32]
    return f"merged-{generation:06d}-{digest}.parquet"


def is_merged(name: str) -> bool:
    """Return whether a blob, called so below its hour, was merged from others."""
    return _MERGED.fullmatch(name) is not None


def range_from_name(name: str) -> SequenceRange | None:
    """Return the rows that a batch's blob holds, None for a merged blob."""
    found = _RAW.fullmatch(name)
    return SequenceRange(found["partition"], int(found["first"]), int(found["last"])) if found else None


def list_prefixes(connection: str, start: datetime, end: datetime) -> Iterator[str]:
    """Yield list_prefixes that together hold every blob of the hours from one instant to another, in order of time."""
    folder = connection_folder(connection)
    day = floor_to_hour(start).replace(hour=0)
    by_month = end - start > 31 * DAY
    last = ""
    while day < end:
        prefix = f"{folder}{day.year:04d}/{day:%m}/" if by_month else f"{folder}{day.year:04d}/{day:%m/%d}/"
        if prefix != last:
            yield prefix
        last = prefix
        try:
            day += DAY
        except OverflowError:
            return


def _segment(connection: str) -> str:
    if _SAFE.fullmatch(connection):
        return connection
    # The service makes no such lookups; whatever else stands on the hub must not lead out of the archive.
    return "~" + hashlib.sha256(connection.encode(errors="surrogatepass")).hexdigest()


def _partition(partition: str) -> str:
    return partition if re.fullmatch(r"[A-Za-z0-9]+", partition) else "~" + partition.encode().hex()
