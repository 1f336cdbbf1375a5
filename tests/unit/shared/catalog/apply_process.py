"""Run as a process by tests: applies a document to the stores of a folder, and may die on the way.

Arguments: folder, document, actor, and where to die: ``nowhere``, ``before-append`` or ``before-settle``.
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
from tests.unit.shared.catalog.stores import plant, workspace_id


class _DeadlyLog(SqliteAuditLog):
    async def append(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002  dies whatever it is given
        os.kill(os.getpid(), signal.SIGKILL)


class _DeadlyStore(SqliteCatalogStore):
    async def settle(self, append_ids: Sequence[str]) -> None:  # noqa: ARG002  dies whatever it is given
        os.kill(os.getpid(), signal.SIGKILL)


async def main(folder: Path, document: WorkspaceDocument, actor: str, die: str) -> None:
    """Apply, once a line came in on standard input."""
    async with plant(folder) as opened:
        store, log = opened.store, opened.log
        if die == "before-append":
            log = _DeadlyLog(folder / "provenance.sqlite", workspace_id)
        if die == "before-settle":
            store = _DeadlyStore(store._database)
        print("ready", flush=True)  # noqa: T201  the test waits for it
        sys.stdin.readline()
        await CatalogService(store, log).apply(document, actor)


asyncio.run(main(Path(sys.argv[1]), load_document(Path(sys.argv[2]).read_text(), "w.yaml"), sys.argv[3], sys.argv[4]))
