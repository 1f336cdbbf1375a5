"""Tests of the place of the archive's temporary files."""

import tempfile
from pathlib import Path

from shared.wiring import Services


def test_temporary_files_have_a_folder_of_their_own(local: Services, on_azure: Services, tmp_path: Path) -> None:
    """Locally they are next to the data, which has the space; an instance on Azure has only its own disk."""
    assert local.cold_data.scratch == tmp_path / "scratch"
    assert on_azure.cold_data.scratch == Path(tempfile.gettempdir()) / "scratch"


def test_reader_and_archive_share_one_container(local: Services) -> None:
    """The reader finds the files that the archive wrote."""
    assert local.cold_data.blobs is local.cold_data.blobs
    assert local.cold_data.blobs is not local.downloads.blobs
