"""Where nothing tells whether what was accepted has come to the archive."""


class UnknownArrivals:
    """The Arrivals port for Azure: the host keeps how far its triggers have read, and does not tell the app."""

    async def settled(self, seconds: float) -> bool:  # noqa: ARG002  the port's signature
        """Return that it is not known."""
        return False
