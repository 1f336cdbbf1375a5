"""Used and free space of the disk that contains the embedded stores."""

import shutil
from pathlib import Path

from shared.disk_space.ports import DiskUsage
from shared.runtime import SYSTEM_RUNTIME, Runtime


class FolderDisk:
    """Implementation of Disk: the file system that contains a folder.

    Args:
        folder: data directory of the embedded stores.
        runtime: clock, randomness and threads.
    """

    def __init__(self, folder: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._folder = folder
        self._runtime = runtime

    async def read_usage(self) -> DiskUsage:
        # In a thread, because a network file system may not respond.
        usage = await self._runtime.run_in_thread(shutil.disk_usage, self._folder)
        return DiskUsage(usage.total, usage.free)
