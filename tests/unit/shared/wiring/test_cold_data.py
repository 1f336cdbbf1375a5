"""Tests of the folder for the archive's temporary files."""

import tempfile
from pathlib import Path

from shared.wiring import Services


def test_temporary_files_have_a_folder_of_their_own(local: Services, uses_azure: Services, tmp_path: Path) -> None:
    """Locally, temporary files are next to the data; on Azure, they are on the instance's disk."""
    assert local.cold_data.scratch == tmp_path / "scratch"
    assert uses_azure.cold_data.scratch == Path(tempfile.gettempdir()) / "scratch"


def test_reader_and_archive_share_one_container(local: Services) -> None:
    """The reader finds the files that the archive wrote."""
    assert local.cold_data.blobs is local.cold_data.blobs
    assert local.cold_data.blobs is not local.downloads.blobs
