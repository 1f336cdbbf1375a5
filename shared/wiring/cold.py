"""Cold data services."""

import tempfile
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from shared.wiring.base import Base

if TYPE_CHECKING:
    from shared.cold_data.archive import Archive
    from shared.cold_data.compaction import Compaction
    from shared.cold_data.ports import BlobStore
    from shared.cold_data.reading import ColdReader

COLD, DOWNLOADS = "cold", "downloads"


class ColdServices(Base):
    """Archives telemetry as blobs."""

    @cached_property
    def cold_blobs(self) -> "BlobStore":
        """Container of the telemetry archive."""
        return self._build_blob_store(COLD)

    @cached_property
    def download_blobs(self) -> "BlobStore":
        """Container of download files."""
        return self._build_blob_store(DOWNLOADS)

    @cached_property
    def archive(self) -> "Archive":
        """Writes impulses to the archive."""
        from shared.cold_data.archive import Archive

        return Archive(self.cold_blobs)

    @cached_property
    def compaction(self) -> "Compaction":
        """Merges archive blobs."""
        from shared.cold_data.compaction import Compaction

        return Compaction(self.cold_blobs, timedelta(minutes=self.settings.compaction_quiet_minutes), self._scratch)

    @cached_property
    def cold_reader(self) -> "ColdReader":
        """Reads the archive."""
        from shared.cold_data.reading import ColdReader

        return ColdReader(self.cold_blobs, self._scratch)

    @property
    def _scratch(self) -> Path:
        """Folder of temporary files; on Azure, the local disk is only suitable for temporary files."""
        root = Path(tempfile.gettempdir()) if self.on_azure else self.settings.data_dir
        return root / "scratch"

    def _build_blob_store(self, container: str) -> "BlobStore":
        from shared.cold_data.observed_blobs import ObservedBlobs

        return ObservedBlobs(self._build_unobserved_store(container), container)

    def _build_unobserved_store(self, container: str) -> "BlobStore":
        configured = self.settings
        if self.on_azure:
            from shared.backends.azure.blobs import AzureBlobStore

            return AzureBlobStore(self.blob_account, container)
        from shared.backends.embedded.blobs import FolderBlobStore
        from shared.backends.embedded.file_links import FileLinks

        folder = configured.data_dir
        links = FileLinks(configured.files_url, folder / "files-key")
        return FolderBlobStore(folder / "blobs" / container, links)
