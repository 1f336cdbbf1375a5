"""Disk of the Azure stores. Azure does not limit it, so the service cannot fill it."""


class UnlimitedDisk:
    """Implementation of Disk without a limit: each Azure service reports by itself that its quota is used up."""

    async def read_usage(self) -> None:
        return None
