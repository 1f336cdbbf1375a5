"""Tests of the archive of cold data: the folder for temporary files, and the shared container."""

import tempfile
from pathlib import Path

from shared.wiring import Services


def test_temporary_files_are_next_to_the_data_only_locally(
    local_services: Services, azure_services: Services, tmp_path: Path
) -> None:
    """On the local host, temporary files are in the data directory; on Azure, they are on the instance's disk."""
    assert local_services.cold_data.scratch == tmp_path / "scratch"
    assert azure_services.cold_data.scratch == Path(tempfile.gettempdir()) / "scratch"


def test_reader_and_archive_share_one_container(local_services: Services) -> None:
    """The reader finds the files that the archive wrote."""
    assert local_services.cold_data.blobs is local_services.cold_data.blobs
    assert local_services.cold_data.blobs is not local_services.downloads.blobs
