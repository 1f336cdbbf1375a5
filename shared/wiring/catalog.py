"""Catalog services."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.errors import Kind, WorkspaceError
from shared.wiring.base import Base

if TYPE_CHECKING:
    from shared.catalog.ports import CatalogStore
    from shared.catalog.reader import CatalogReader

MAX_STALE_CREDENTIALS_SECONDS = 15.0
"""Maximum age of credentials and team if the store does not answer; revocations take effect within this time."""


class CatalogServices(Base):
    """Reads the catalog."""

    @cached_property
    def catalog_store(self) -> "CatalogStore":
        """Store of the catalog."""
        if self.on_azure:
            from shared.backends.azure.cosmos_catalog import CosmosCatalogStore

            return CosmosCatalogStore(self.cosmos)
        from shared.backends.embedded.catalog import SqliteCatalogStore

        return SqliteCatalogStore(self._workspace_file)

    @cached_property
    def catalog(self) -> "CatalogReader":
        """Cached catalog of this process."""
        from shared.catalog.reader import CatalogReader

        return CatalogReader(
            self.catalog_store, self.settings.refresh_seconds, max_stale_seconds=MAX_STALE_CREDENTIALS_SECONDS
        )

    async def _workspace_id(self) -> str:
        workspace = (await self.catalog.current()).workspace
        if workspace is None:
            raise WorkspaceError(
                Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", "No workspace document has been applied yet."
            )
        return workspace.id
