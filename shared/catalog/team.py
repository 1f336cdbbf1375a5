"""The team as authentication sees it."""

from shared.auth.ports import Team
from shared.catalog.reader import CatalogReader


class CatalogDirectory:
    """The Directory port over the catalog."""

    def __init__(self, catalog: CatalogReader) -> None:
        self._catalog = catalog
        self._held: tuple[int, Team] | None = None

    async def team(self) -> Team:
        """Return the team as of the catalog's current version."""
        catalog = await self._catalog.current()
        if self._held is None or self._held[0] != catalog.version:
            workspace = "" if catalog.workspace is None else catalog.workspace.id
            audited = catalog.policies.provenance is not None
            self._held = (catalog.version, Team(workspace, catalog.members, audited))
        return self._held[1]
