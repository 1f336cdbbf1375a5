"""SQL over an hour's Parquet files: its rows, each once, in order."""

from collections.abc import Sequence
from pathlib import Path

IDENTITY = '"partition", "sequence", enqueued_at'
"""What tells an event of the hub from all others; the time too, since a hub that begins anew repeats its numbers."""

ORDER = 'timestamp, "partition", "sequence"'


def rows_once(source: str, columns: Sequence[str], *, overlapping: bool) -> str:
    """Return the query for the rows of a source, those that stand there several times once."""
    named = ", ".join(f'"{name}"' for name in columns)
    query = f"SELECT {named} FROM {source}"  # noqa: S608  our own names
    return f"SELECT DISTINCT ON ({IDENTITY}) * FROM ({query})" if overlapping else query  # noqa: S608  as above


def repeated_ids(files: Sequence[Path]) -> str:
    """Return the query for hashes of message ids that stand in more than one row, or seem to."""
    found = f"SELECT hash(message_id) AS h FROM {blobs(files)}"  # noqa: S608  our own names
    return f"SELECT h FROM ({found}) GROUP BY h HAVING count(*) > 1"  # noqa: S608  as above


def with_ids_in(files: Sequence[Path], table: str) -> str:
    """Return the query for the rows whose message id has its hash in a table: id, identity and arrival."""
    instants = "epoch_us(enqueued_at) AS enqueued, epoch_us(timestamp) AS happened"
    return (
        f'SELECT * FROM (SELECT DISTINCT message_id, "partition", "sequence", {instants} '  # noqa: S608  our own names
        f"FROM {blobs(files)} WHERE hash(message_id) IN (SELECT h FROM {table}))"
    )


def without(query: str, table: str) -> str:
    """Return the query for the rows of a query that do not stand in a table of partition, sequence and arrival."""
    places = 'r."partition" = c."partition" AND r."sequence" = c."sequence" AND epoch_us(r.enqueued_at) = c.enqueued'
    return f"SELECT r.* FROM ({query}) r ANTI JOIN {table} c ON {places}"  # noqa: S608  our own names


def text(value: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def blobs(files: Sequence[Path]) -> str:
    """Return the source that some blobs are."""
    return f"read_parquet([{', '.join(text(str(file)) for file in files)}])"
