"""How a SQLite file that does not answer looks to the domains."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from shared.errors import Kind, WorkspaceError


@contextmanager
def answering(code: str, what: str) -> Iterator[None]:
    """Turn a failure of the file (locked too long, disk full, damaged, unreachable) into UNAVAILABLE.

    Args:
        code: of the error, for instance ``CATALOG_UNAVAILABLE``.
        what: names the store in the error's detail.

    Raises:
        WorkspaceError: UNAVAILABLE with that code.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise WorkspaceError(Kind.UNAVAILABLE, code, f"{what} does not answer at the moment; try again") from error
