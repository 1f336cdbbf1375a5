"""Features that a workspace has only if its document declares them."""

from typing import Final

from shared.wiring.catalog import CatalogServices

PROVENANCE: Final = "provenance"
"""Feature that every provenance route requires."""


class Features:
    """Reads the workspace's features from the catalog."""

    def __init__(self, catalog: CatalogServices) -> None:
        self._catalog = catalog

    async def has(self, feature: str) -> bool:
        """Return whether the workspace has a feature."""
        return feature == PROVENANCE and (await self._catalog.current()).policies.provenance is not None

    async def require(self, feature: str) -> None:
        """Check that the workspace has a feature.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_NOT_PROVISIONED``.
        """
        from shared.provenance.selection import not_provisioned_error

        if feature == PROVENANCE and not await self.has(feature):
            raise not_provisioned_error()
