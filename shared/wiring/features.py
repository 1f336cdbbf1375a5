"""Check of the optional features that the workspace document declares, for operations that require a feature."""

from typing import Final

from shared.wiring.catalog import CatalogServices

PROVENANCE: Final = "provenance"
"""Feature that every provenance route requires."""


class Features:
    """Reads from the catalog which optional features the workspace document declares."""

    def __init__(self, catalog: CatalogServices) -> None:
        self._catalog = catalog

    async def has_feature(self, feature: str) -> bool:
        """Return whether the workspace document declares a feature; the only known feature is ``provenance``."""
        return feature == PROVENANCE and (await self._catalog.get_current_catalog()).policies.provenance is not None

    async def require_feature(self, feature: str) -> None:
        """Check that the workspace document declares a feature; only ``provenance`` is checked.

        Raises:
            WorkspaceError: UNAVAILABLE ``PROVENANCE_NOT_PROVISIONED``.
        """
        from shared.provenance.selection import build_not_provisioned_error

        if feature == PROVENANCE and not await self.has_feature(feature):
            raise build_not_provisioned_error()
