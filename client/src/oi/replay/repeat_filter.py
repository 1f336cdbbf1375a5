"""Filter that skips CSV rows that repeat an earlier row."""

from collections.abc import Iterable, Iterator

from oi.replay.csv_rows import CsvRow, FileError


class RepeatFilter:
    """Filter that skips rows that repeat an earlier row: same connection, device, time and content.

    If a row has a message id in the column messageId, it repeats only an earlier row with the same message id.
    The filter uses about 120 bytes of memory per row.

    Attributes:
        read: number of rows read so far.
        repeated: number of rows skipped so far.
    """

    def __init__(self) -> None:
        self.read = 0
        self.repeated = 0
        self._seen: set[bytes] = set()
        self._own: dict[str, tuple[str, str]] = {}

    def iterate_unique_rows(self, rows: Iterable[CsvRow]) -> Iterator[CsvRow]:
        """Yield the rows that do not repeat an earlier row.

        Raises:
            FileError: two rows with different content have the same message id; the service would store only one row.
        """
        for row in rows:
            self.read += 1
            if self._is_repeat(row):
                self.repeated += 1
            else:
                yield row

    def _is_repeat(self, row: CsvRow) -> bool:
        if row.own_id:
            this = (row.content_id, row.place)
            first = self._own.setdefault(row.own_id, this)
            if first[0] != row.content_id:
                raise FileError(f"{row.place} has the messageId of another row with different content ({first[1]})")
            return first is not this
        digest = bytes.fromhex(row.content_id)
        if digest in self._seen:
            return True
        self._seen.add(digest)
        return False
