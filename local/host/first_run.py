"""First start of the local host: seeds the workspace and issues an API key to each team member.

It is a module of its own because it loads the app's services, which a host without a workspace document never needs.
"""

import asyncio
import json
import os
from pathlib import Path

from shared.catalog.document import load_document
from shared.catalog.models import WorkspaceDocument
from shared.catalog.problems import DocumentError
from shared.observability.logs import fields, get_logger
from shared.settings import Settings
from shared.warm_queries.document_checks import check_document_queries
from shared.wiring import Services

ACTOR = "local-host"
_LOG = get_logger("first-run")


async def prepare(settings: Settings, workspace_file: Path) -> None:
    """Seed an empty data directory, and complete an interrupted seed.

    Args:
        settings: settings with the data directory.
        workspace_file: the document to seed; read only if the catalog is empty.

    Raises:
        shared.catalog.problems.DocumentError: the document is invalid; nothing is stored.
        OSError: the document cannot be read, or the data directory cannot be written.
    """
    wired = Services(settings)
    if await wired.catalog.store.version() == 0:
        text = await asyncio.to_thread(workspace_file.read_text, encoding="utf-8")
        document = load_document(text, str(workspace_file))
        await _try_queries(document, text, str(workspace_file), wired)
        await wired.provenance.catalog_service.apply(document, ACTOR)
        _LOG.info("seeded the workspace")
    await wired.provenance.catalog_service.flush_pending()
    await _write_keys(wired, settings.data_dir / "keys.json")
    await wired.close()


async def _try_queries(document: WorkspaceDocument, text: str, source: str, wired: Services) -> None:
    """Log queries that the engine rejects; they do not prevent the start, and report the error when they run."""
    try:
        silent = await check_document_queries(document, text, source, wired.queries.columns)
    except DocumentError as refused:
        for problem in refused.problems:
            _LOG.warning("a query of the workspace document does not run", extra=fields(problem=str(problem)))
    else:
        if silent is not None:
            _LOG.warning("the queries are seeded without validation", extra=fields(reason=silent.code))


async def _write_keys(wired: Services, path: Path) -> None:
    if await asyncio.to_thread(path.exists):
        return
    catalog = await wired.catalog.current()
    issued = {member: await wired.access.api_keys.issue(ACTOR, member, "first start") for member in catalog.members}
    keys = {member: key.api_key for member, key in issued.items()}
    await asyncio.to_thread(_write_private, path, json.dumps(keys, indent=2))


def _write_private(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
