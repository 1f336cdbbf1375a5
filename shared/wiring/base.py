"""What every part of the wiring stands on: the settings and the workspace's own store."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.errors import Kind, WorkspaceError
from shared.settings import Settings, Stores

if TYPE_CHECKING:
    from shared.backends.embedded.sqlite import Database


class Base:
    """Settings, and the file of the embedded stores."""

    def __init__(self, configured: Settings) -> None:
        self.settings = configured

    @cached_property
    def _workspace_file(self) -> "Database":
        self._embedded("workspace store")
        from shared.backends.embedded import answers, catalog, credentials, download_jobs, idempotency  # noqa: PLC0415
        from shared.backends.embedded.sqlite import Database  # noqa: PLC0415

        schemas = (catalog.SCHEMA, credentials.SCHEMA, idempotency.SCHEMA, answers.SCHEMA, download_jobs.SCHEMA)
        return Database(self.settings.data_dir / "workspace.sqlite", "".join(schemas))

    @property
    def on_azure(self) -> bool:
        """Whether state lives in the tenant's services."""
        return self.settings.stores is Stores.AZURE

    def _embedded(self, what: str) -> None:
        if self.settings.stores is not Stores.EMBEDDED:
            raise WorkspaceError(
                Kind.UNAVAILABLE, "STORE_NOT_AVAILABLE", f"STORES=azure: there is no Azure adapter of the {what} yet."
            )
