"""Store of the catalog (the workspace's definitions), and its cached reader."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.errors import Kind, WorkspaceError
from shared.wiring.backends import Backends

if TYPE_CHECKING:
    from shared.catalog.ports import CatalogStore
    from shared.catalog.reader import CatalogReader
    from shared.catalog.snapshot import Catalog

MAX_STALE_CREDENTIALS_SECONDS = 15.0
"""Maximum age in seconds of cached credentials and team while the store does not respond.

Revocations take effect within this time.
"""


class CatalogServices:
    """Provides the catalog, which contains the workspace's definitions."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    @cached_property
    def store(self) -> "CatalogStore":
        """Store of the catalog."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_catalog import CosmosCatalogStore

            return CosmosCatalogStore(self._backends.cosmos)
        from shared.backends.embedded.catalog import SqliteCatalogStore

        return SqliteCatalogStore(self._backends.workspace_file)

    @cached_property
    def reader(self) -> "CatalogReader":
        """Reader that caches the catalog in this process."""
        from shared.catalog.reader import CatalogReader

        refresh_seconds = self._backends.settings.refresh_seconds
        return CatalogReader(
            self.store, refresh_seconds, max_stale_seconds=MAX_STALE_CREDENTIALS_SECONDS, runtime=self._backends.runtime
        )

    async def get_current_catalog(self) -> "Catalog":
        """Return the current catalog, which can be a few seconds old."""
        return await self.reader.get_catalog()

    async def load_newest_catalog(self) -> "Catalog":
        """Return the newest catalog from the store, with the changes that other instances have stored.

        If the store does not respond, return the cached catalog if it is at most 15 seconds old, so that webhooks
        continue during a short outage.

        Raises:
            WorkspaceError: the errors of :meth:`CatalogReader.get_catalog`.
        """
        self.reader.invalidate()
        return await self.get_current_catalog()

    async def is_workspace_audited(self) -> bool:
        """Return whether the workspace has provenance (audit chains) now; the cached catalog can be older.

        Raises:
            WorkspaceError: UNAVAILABLE ``CATALOG_UNAVAILABLE`` if the store does not respond.
        """
        return (await self.reader.load_stored_catalog()).policies.provenance is not None

    async def load_workspace_id(self) -> str:
        """Return the id of the workspace.

        Raises:
            WorkspaceError: UNAVAILABLE ``WORKSPACE_NOT_DECLARED``.
        """
        workspace = (await self.get_current_catalog()).workspace
        if workspace is None:
            raise WorkspaceError(
                Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", "No workspace document has been applied yet."
            )
        return workspace.id
