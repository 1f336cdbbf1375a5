"""First start of the local host, and the check of the saved queries after each start.

The first start stores the workspace document, unless a command has stored one before, and issues an API key to each
team member, unless a key was issued before. After each start, the query engine determines the columns of each
saved query in the background. Afterwards, lists of queries find the columns in the cache, and the log contains every
query that the engine rejects, before a user runs it.

This module is separate because it imports the services of the app, which need complete settings.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from shared.backends.embedded import durable_files
from shared.catalog.document import LoadedDocument, load_document_with_positions
from shared.catalog.models import WarmQuery
from shared.catalog.query_checks import format_kql_error
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.observability.readiness import report_background_work
from shared.provenance.ports import ServiceUser
from shared.settings import Settings
from shared.warm_queries.columns import QueryColumns
from shared.wiring import Services, services

NAME: Final = "query checks"
MAX_AWAITED_QUERIES: Final = 50
"""Maximum number of queries for whose check the first start waits."""

RETRIES: Final = 3
"""Number of retries for one query while the engine fails."""
RETRY_SECONDS: Final = 5.0

_LOG = get_logger("query-checks")


class _Rejection(NamedTuple):
    """Query that the engine rejects: its position in the list of queries, and the engine's error."""

    position: int
    error: WorkspaceError


class QueryChecks:
    """Check of all saved queries of the workspace.

    The check changes no stored data, so several hosts can run it at the same time, and a restart repeats an
    interrupted check.

    Args:
        loaded: workspace document that this start has stored, for line numbers in the log; None at later starts.
        services: returns the services of the app; the check fills their cache of columns.
    """

    def __init__(self, loaded: LoadedDocument | None, services: Callable[[], Services] = services) -> None:
        self._loaded = loaded
        self._services = services

    @property
    def must_delay_start(self) -> bool:
        """True at the first start with a small workspace: the host waits for the check before it prints its address."""
        return self._loaded is not None and len(self._loaded.document.warm_queries) <= MAX_AWAITED_QUERIES

    async def run(self) -> None:
        """Check the saved queries and log every query that the engine rejects; other errors are logged, not raised."""
        with report_background_work(NAME):
            try:
                await self._check_queries()
            except Exception:  # noqa: BLE001  the engine and the store can raise any exception
                _LOG.exception("the queries were not checked")

    async def _check_queries(self) -> None:
        queries = await self._list_queries_to_check()
        started_at = time.monotonic()
        _LOG.info("checking the queries", extra=fields(queries=len(queries)))
        rejected = 0
        async for index, error in self._iterate_rejections(queries):
            rejected += 1
            problem = self._describe_rejection(index, queries[index], format_kql_error(error))
            _LOG.warning("a query of the workspace document does not run", extra=fields(problem=problem))
        seconds = round(time.monotonic() - started_at, 2)
        _LOG.info("checked the queries", extra=fields(queries=len(queries), rejected=rejected, seconds=seconds))

    def _describe_rejection(self, index: int, query: WarmQuery, error_text: str) -> str:
        """Return a text for the log that names a rejected query and states the engine's error.

        The query is named by its position in the workspace document at the first start of the host, and by its lookup
        (short name in URLs) later.
        """
        if self._loaded is None:
            return f"{query.lookup}: {error_text}"
        [problem] = self._loaded.build_error_with_positions([(("warmQueries", index, "kql"), error_text)]).problems
        return str(problem)

    async def _iterate_rejections(self, queries: Sequence[WarmQuery]) -> AsyncIterator[_Rejection]:
        """Yield the queries that the engine rejects; stop if the engine is unavailable."""
        columns = self._services().queries.columns
        columns.enlarge_cache(len(queries))
        for index, query in enumerate(queries):
            error = await _find_query_error(columns, query)
            if error is not None and error.kind is not Kind.INVALID:
                _LOG.warning("the remaining queries are not checked", extra=fields(reason=error.code))
                return
            if error is not None:
                yield _Rejection(index, error)

    async def _list_queries_to_check(self) -> Sequence[WarmQuery]:
        """Return the queries of the workspace document at the first start, and those of the catalog later."""
        if self._loaded is not None:
            return self._loaded.document.warm_queries
        return [entry.value for entry in (await self._services().catalog.get_current_catalog()).queries.values()]


async def _find_query_error(columns: QueryColumns, query: WarmQuery) -> WorkspaceError | None:
    """Return the engine's error for a query, or None if the query is valid.

    Try again while the engine is unavailable.
    """
    error = await columns.find_query_error(query)
    for _ in range(RETRIES):
        if error is None or error.kind is Kind.INVALID:
            break
        await asyncio.sleep(RETRY_SECONDS)
        error = await columns.find_query_error(query)
    return error


KEY_FILE: Final = "keys.json"
"""File with the API key of each member, written once by the first start."""

KEY_DRAFT: Final = "keys.draft"
"""Draft of the key file. It exists from before the first key is issued until all keys are written."""

_SEEDING_LOG = get_logger("first-run")


async def seed_data_dir_and_build_query_checks(settings: Settings, workspace_file: Path) -> QueryChecks:
    """Store a workspace document if the catalog is empty, issue API keys, and complete an interrupted first start.

    API keys are issued only if no key was ever issued, even if a command has stored the workspace.

    Args:
        settings: settings of the service, which contain the data directory.
        workspace_file: workspace document; it is read only if the catalog is empty.

    Returns:
        The check of the workspace's queries; the caller must start it.

    Raises:
        shared.catalog.problems.DocumentError: the workspace document is invalid; nothing is stored.
        OSError: the workspace document cannot be read, or the data directory cannot be written.
        WorkspaceError: a store does not respond, for instance because the disk is full.
    """
    wired = Services(settings)
    try:
        seeded = await _seed_catalog_if_empty(wired, workspace_file)
        await _append_pending_audit_events(wired)
        await _issue_pending_api_keys(wired, settings.data_dir)
    finally:
        await wired.close()
    return QueryChecks(seeded)


async def _seed_catalog_if_empty(wired: Services, workspace_file: Path) -> LoadedDocument | None:
    """Store the workspace document if the catalog is empty; return the stored document, or None."""
    if await wired.catalog.store.read_version() != 0:
        return None
    text = await asyncio.to_thread(workspace_file.read_text, encoding="utf-8")
    seeded = load_document_with_positions(text, str(workspace_file))
    await wired.provenance.catalog_service.apply(seeded.document, ServiceUser.LOCAL_HOST)
    _SEEDING_LOG.info("seeded the workspace")
    return seeded


async def _append_pending_audit_events(wired: Services) -> None:
    """Append pending audit events; if this fails, log the error, because a background job repeats it.

    A damaged chain must not prevent the start: the operator needs the running host to verify the chain.
    """
    try:
        await wired.provenance.catalog_service.flush_and_count_pending_events()
    except WorkspaceError as error:
        _SEEDING_LOG.error("audit events stay pending; a background job appends them later: %s", error)


async def _issue_pending_api_keys(wired: Services, data_dir: Path) -> None:
    """Issue an API key to each member and write the keys to a file, unless a key was already issued."""
    draft = data_dir / KEY_DRAFT
    if await wired.access.credential_store.read_version() == 0:
        await asyncio.to_thread(_create_key_draft, draft)
    elif not await asyncio.to_thread(draft.exists):
        return
    catalog = await wired.catalog.get_current_catalog()
    issued = {
        member: await wired.access.api_keys.issue_without_rights_check(ServiceUser.LOCAL_HOST, member, "first start")
        for member in catalog.members
    }
    keys = {member: key.api_key for member, key in issued.items()}
    await asyncio.to_thread(_publish_key_file, draft, json.dumps(keys, indent=2))


def _create_key_draft(draft_path: Path) -> None:
    """Create an empty draft of the key file; while the draft exists, each start of the host issues the keys again."""
    _write_private_file(draft_path, "")
    durable_files.fsync_folders_up_to(draft_path, draft_path.parent)


def _publish_key_file(draft_path: Path, keys_json: str) -> None:
    _write_private_file(draft_path, keys_json)
    draft_path.replace(draft_path.with_name(KEY_FILE))
    durable_files.fsync_folders_up_to(draft_path, draft_path.parent)


def _write_private_file(path: Path, text: str) -> None:
    """Write a file that only its owner can read, and flush its content to disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
