"""Archive services."""

import tempfile
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends

if TYPE_CHECKING:
    from shared.cold_data.archive import Archive
    from shared.cold_data.compaction import Compaction
    from shared.cold_data.ports import BlobStore
    from shared.cold_data.reading import ColdReader

COLD = "cold"
"""Container of the telemetry archive."""


class ColdDataServices:
    """Archives telemetry as blobs."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._settings = backends.settings

    @cached_property
    def blobs(self) -> "BlobStore":
        """Container of the telemetry archive."""
        return self._backends.close_at_exit(self._backends.build_blob_store(COLD))

    @cached_property
    def archive(self) -> "Archive":
        """Writes impulses to the archive."""
        from shared.cold_data.archive import Archive

        return Archive(self.blobs)

    @cached_property
    def compaction(self) -> "Compaction":
        """Merges archive blobs."""
        from shared.cold_data.compaction import Compaction

        return Compaction(self.blobs, timedelta(minutes=self._settings.compaction_quiet_minutes), self.scratch)

    @cached_property
    def reader(self) -> "ColdReader":
        """Reads the archive."""
        from shared.cold_data.reading import ColdReader

        return ColdReader(self.blobs, self.scratch)

    @property
    def scratch(self) -> Path:
        """Folder of temporary files; on Azure, the local disk is only suitable for temporary files."""
        root = Path(tempfile.gettempdir()) if self._backends.on_azure else self._settings.data_dir
        return root / "scratch"
