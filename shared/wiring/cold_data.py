"""Services of the telemetry archive (cold data), which consists of blobs."""

import tempfile
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends

if TYPE_CHECKING:
    from shared.cold_data.archive import Archive, Compaction
    from shared.cold_data.ports import BlobStore
    from shared.cold_data.reading import ColdReader

COLD = "cold"
"""Name of the blob container of the telemetry archive."""


class ColdDataServices:
    """Archives telemetry as blobs, and reads the archive."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._settings = backends.settings

    @cached_property
    def blobs(self) -> "BlobStore":
        """Store of the telemetry archive's blobs."""
        return self._backends.register_for_closing(self._backends.build_blob_store(COLD))

    @cached_property
    def archive(self) -> "Archive":
        """Service that writes telemetry events (impulses) to the archive."""
        from shared.cold_data.archive import Archive

        return Archive(self.blobs, runtime=self._backends.runtime)

    @cached_property
    def compaction(self) -> "Compaction":
        """Service that merges the archive's small blobs."""
        from shared.cold_data.archive import Compaction

        return Compaction(
            self.blobs,
            timedelta(minutes=self._settings.compaction_quiet_minutes),
            self.scratch,
            runtime=self._backends.runtime,
        )

    @cached_property
    def reader(self) -> "ColdReader":
        """Service that reads telemetry from the archive."""
        from shared.cold_data.reading import ColdReader

        return ColdReader(self.blobs, self.scratch, runtime=self._backends.runtime)

    @property
    def scratch(self) -> Path:
        """Folder of temporary files: on Azure on the instance's own disk, else in the data directory."""
        root = Path(tempfile.gettempdir()) if self._backends.uses_azure else self._settings.data_dir
        return root / "scratch"
