"""Tests of download jobs in SQLite that do not apply to other stores."""

from pathlib import Path

import pytest

from shared.backends.embedded.jobs import SCHEMA, SqliteJobStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.errors import WorkspaceError


async def test_a_job_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    """If the file of the download jobs cannot be opened, the store raises DOWNLOADS_UNAVAILABLE."""
    with pytest.raises(WorkspaceError) as failure:
        await SqliteJobStore(SqliteDatabase(tmp_path, SCHEMA)).find_job("x")
    assert failure.value.code == "DOWNLOADS_UNAVAILABLE"
