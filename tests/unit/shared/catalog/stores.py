"""Catalog and audit log in files, for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.backends.embedded.catalog import SCHEMA, SqliteCatalogStore
from shared.backends.embedded.provenance import SqliteAuditLog
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.service import CatalogService
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import Target
from tests.unit.shared.provenance.record_rules import find_first_fault


@dataclass
class CatalogStores:
    """Catalog and audit log of a workspace, with their services.

    Attributes:
        store: the catalog.
        log: the audit chains.
        service: commits changes.
    """

    store: SqliteCatalogStore
    log: SqliteAuditLog
    service: CatalogService

    async def read_chain(self, target: Target = Target.PLATFORM_CONFIG) -> list[dict[str, Any]]:
        """Verify one audit chain of the workspace and return its records."""
        records = await self.log.read_all_records(target)
        assert find_first_fault(records, compute_genesis_hash("plant-a", target)) is None
        return records

    async def list_audited_changes(self) -> list[tuple[str, str]]:
        """Return the action and the entity of each event in the chains of the catalog and of access control."""
        records = [
            record
            for target in (Target.PLATFORM_CONFIG, Target.ACCESS_CONTROL)
            for record in await self.read_chain(target)
        ]
        return [(record["ActionType"], record["EntityID"]) for record in records]


async def get_workspace_id() -> str:
    """Return the id of the test workspace."""
    return "plant-a"


@asynccontextmanager
async def open_catalog_stores(folder: Path) -> AsyncIterator[CatalogStores]:
    """Open the catalog and the audit log in a folder; close both at the end of the ``async with`` block."""
    database = SqliteDatabase(folder / "workspace.sqlite", SCHEMA)
    store = SqliteCatalogStore(database)
    log = SqliteAuditLog(folder / "provenance.sqlite", get_workspace_id)
    try:
        yield CatalogStores(store, log, CatalogService(store, log))
    finally:
        await log.close()
        await database.close()
