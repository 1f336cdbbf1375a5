"""Disk of the Azure stores, which the service cannot fill."""


class UnlimitedDisk:
    """Implementation of Disk without a limit: each Azure service reports by itself that its quota is used up."""

    async def read_usage(self) -> None:
        return None
