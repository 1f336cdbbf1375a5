"""Port of the disk that stores the workspace's data."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Size of a disk, and the space on it that the service can still use, in bytes."""

    total: int
    free: int


class Disk(Protocol):
    """Disk that stores the workspace's data."""

    async def read_usage(self) -> DiskUsage | None:
        """Return the current usage of the disk; None if storage is practically unlimited, as on Azure.

        Raises:
            OSError: the disk does not respond.
        """
        ...
