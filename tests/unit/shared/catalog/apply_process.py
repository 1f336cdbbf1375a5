"""Test process that applies a document to the stores of a folder, and can end in the middle.

Arguments: folder, document, actor, and where to end: ``nowhere``, ``before-append`` or ``before-settle``.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared.backends.embedded.catalog import SqliteCatalogStore
from shared.backends.embedded.provenance import SqliteAuditLog
from shared.catalog.document import load_document
from shared.catalog.models import WorkspaceDocument
from shared.catalog.service import CatalogService
from tests.unit.shared.catalog.stores import get_workspace_id, open_catalog_stores


class _CrashingLog(SqliteAuditLog):
    async def append(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002  ends for any arguments
        os.kill(os.getpid(), signal.SIGKILL)


class _CrashingStore(SqliteCatalogStore):
    async def delete_pending_events(self, append_ids: Sequence[str]) -> None:  # noqa: ARG002  ends for any arguments
        os.kill(os.getpid(), signal.SIGKILL)


async def main(folder: Path, document: WorkspaceDocument, actor: str, crash_point: str) -> None:
    """Wait for a line on standard input, then apply the document."""
    async with open_catalog_stores(folder) as opened:
        store, log = opened.store, opened.log
        if crash_point == "before-append":
            log = _CrashingLog(folder / "provenance.sqlite", get_workspace_id)
        if crash_point == "before-settle":
            store = _CrashingStore(store._database)
        print("ready", flush=True)  # noqa: T201  the test waits for it
        sys.stdin.readline()
        await CatalogService(store, log).apply(document, actor)


asyncio.run(main(Path(sys.argv[1]), load_document(Path(sys.argv[2]).read_text(), "w.yaml"), sys.argv[3], sys.argv[4]))
