"""First start of the local host: seeds the workspace and issues an API key to each team member.

This module is separate because it imports the app's services, which a host without a workspace document does not need.
"""

import asyncio
import json
import os
from pathlib import Path

from local.host.query_checks import QueryChecks
from shared.catalog.document import LoadedDocument, load_located_document
from shared.observability.logs import get_logger
from shared.settings import Settings
from shared.wiring import Services

ACTOR = "local-host"
_LOG = get_logger("first-run")


async def prepare_data_dir(settings: Settings, workspace_file: Path) -> QueryChecks:
    """Store a workspace document in an empty data directory and issue API keys, or complete an interrupted first start.

    Args:
        settings: settings of the service, which contain the data directory.
        workspace_file: workspace document; it is read only if the catalog is empty.

    Returns:
        The check of the workspace's queries; the caller must start it.

    Raises:
        shared.catalog.problems.DocumentError: the document is invalid; nothing is stored.
        OSError: the document cannot be read, or the data directory cannot be written.
    """
    wired = Services(settings)
    seeded: LoadedDocument | None = None
    if await wired.catalog.store.read_version() == 0:
        text = await asyncio.to_thread(workspace_file.read_text, encoding="utf-8")
        seeded = load_located_document(text, str(workspace_file))
        await wired.provenance.catalog_service.apply(seeded.document, ACTOR)
        _LOG.info("seeded the workspace")
    await wired.provenance.catalog_service.flush_pending()
    await _write_keys(wired, settings.data_dir / "keys.json")
    await wired.close()
    return QueryChecks(seeded)


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
