"""Blob names of the telemetry archive: connection, hour, and sequence numbers of the rows."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
_TEN_YEARS = timedelta(days=3660)
ROOT = "impulses"
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HOUR = re.compile(r"(\d{4})/(\d\d)/(\d\d)/(\d\d)")
_SEQUENCE = 20
_NUMBER = rf"\d{{{_SEQUENCE}}}"
_RAW = re.compile(rf"(?P<partition>[A-Za-z0-9~]+)-(?P<first>{_NUMBER})-(?P<last>{_NUMBER})(?:-\d+)?\.parquet")
_MERGED = re.compile(r"merged-\d{6}-[0-9a-f]{32}\.parquet")


@dataclass(frozen=True, slots=True)
class SequenceRange:
    """Range of Event Hubs sequence numbers in one partition.

    A blob contains those messages of the range that have the same connection and the same hour.
    """

    partition: str
    first: int
    last: int


def floor_to_hour(instant: datetime) -> datetime:
    """Return the start of the UTC hour that contains an instant."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def build_connection_folder(connection: str) -> str:
    """Return the prefix of the names of a connection's blobs; no blob of another connection has this prefix."""
    return f"{ROOT}/{_escape_connection(connection)}/"


def build_hour_folder(connection: str, hour: datetime) -> str:
    """Return the blob name prefix of a connection and hour."""
    # strftime omits leading zeros of years before 1000.
    return f"{build_connection_folder(connection)}{hour.year:04d}/{hour:%m/%d/%H}/"


def hour_from_blob_name(blob_name: str) -> datetime | None:
    """Parse the hour from the name of an archive blob; None if the name has another format."""
    match = _HOUR.search(blob_name)
    if match is None:
        return None
    year, month, day, hour = map(int, match.groups())
    return datetime(year, month, day, hour, tzinfo=UTC)


def folder_from_blob_name(blob_name: str) -> str:
    """Return a blob's name up to and including the last slash; this part identifies the connection and hour."""
    return blob_name[: blob_name.rindex("/") + 1]


def build_batch_blob_name(sequence_range: SequenceRange) -> str:
    """Return the name of the blob for a batch of events, relative to the folder of its hour.

    If a batch is sent again, its name is the same.
    """
    partition = _escape_partition(sequence_range.partition)
    return f"{partition}-{sequence_range.first:0{_SEQUENCE}d}-{sequence_range.last:0{_SEQUENCE}d}.parquet"


def build_batch_blob_name_after_hub_reset(usual_name: str, enqueued_microseconds: int) -> str:
    """Return the blob name for a batch of events if the usual name is taken, because the event hub was reset.

    Args:
        usual_name: the usual name, from :func:`build_batch_blob_name`.
        enqueued_microseconds: enqueued time of the earliest event of the batch, microseconds since 1970.
    """
    return f"{usual_name.removesuffix('.parquet')}-{enqueued_microseconds}.parquet"


def build_merged_blob_name(source_names: list[str]) -> str:
    """Return the name, relative to the folder of the hour, of the blob that merges the blobs ``source_names``.

    The name sorts after the names of these blobs.
    """
    generation = 1 + max((int(source.split("-")[1]) for source in source_names if is_merged_blob(source)), default=0)
    digest = hashlib.sha256("\n".join(sorted(source_names)).encode()).hexdigest()[:32]
    return f"merged-{generation:06d}-{digest}.parquet"


def is_merged_blob(blob_name: str) -> bool:
    """Return whether an archive blob with this name was merged from other blobs."""
    return _MERGED.fullmatch(blob_name) is not None


def sequence_range_from_blob_name(blob_name: str) -> SequenceRange | None:
    """Parse the range of sequence numbers from the name of a batch's blob; None for a merged blob."""
    match = _RAW.fullmatch(blob_name)
    return SequenceRange(match["partition"], int(match["first"]), int(match["last"])) if match else None


def iterate_blob_prefixes(connection: str, start: datetime, end: datetime) -> Iterator[str]:
    """Yield blob name prefixes that together cover a connection's time range, in ascending order.

    A prefix covers one day; for a range of over 31 days, one month; for a range of over ten years, all hours of the
    connection.
    """
    folder = build_connection_folder(connection)
    if end - start > _TEN_YEARS:
        # One listing of the archive is shorter than a listing of each month of the calendar.
        yield folder
        return
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


def _escape_connection(connection: str) -> str:
    if _SAFE.fullmatch(connection):
        return connection
    # The service never creates such lookups (ids of connections); foreign events on the hub must not escape the
    # archive's folder.
    return "~" + hashlib.sha256(connection.encode(errors="surrogatepass")).hexdigest()


def _escape_partition(partition: str) -> str:
    return partition if re.fullmatch(r"[A-Za-z0-9]+", partition) else "~" + partition.encode().hex()
