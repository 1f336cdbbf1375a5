"""OAuth grants (rights that a team member delegated to an OAuth client) in SQLite."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Final

from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.oauth.grants import Grant, StoredGrant, grant_from_json, grant_to_json
from shared.timestamps import format_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS oauth_grants (
  grant_id TEXT PRIMARY KEY, member_id TEXT NOT NULL, token_id TEXT NOT NULL, api_key_id TEXT NOT NULL,
  expires_at TEXT NOT NULL, unrecorded INTEGER NOT NULL, version INTEGER NOT NULL, content TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS oauth_grants_by_member ON oauth_grants (member_id);
CREATE INDEX IF NOT EXISTS oauth_grants_unrecorded ON oauth_grants (unrecorded) WHERE unrecorded = 1;
CREATE INDEX IF NOT EXISTS oauth_grants_by_expiry ON oauth_grants (expires_at);
"""

_RETAINED: Final = timedelta(days=1)
"""Time for which an expired grant is stored, so that a late use of its authorization code is still recognised."""

_FOR_MEMBER: Final = "SELECT content FROM oauth_grants WHERE member_id = ? AND expires_at > ? ORDER BY grant_id"
_FOR_ALL: Final = "SELECT content FROM oauth_grants WHERE expires_at > ? ORDER BY grant_id"
_FOR_ANCESTOR: Final = """
SELECT content FROM oauth_grants WHERE expires_at > ?2 AND (
  token_id = ?1 OR api_key_id = ?1 OR EXISTS (SELECT 1 FROM json_each(content, '$.ancestorIds') WHERE value = ?1)
) ORDER BY grant_id
"""
_UNRECORDED: Final = "SELECT content, version FROM oauth_grants WHERE unrecorded = 1 ORDER BY grant_id"

type _Query = tuple[str, tuple[str, ...]]
"""SQL text of a query, and its parameters."""


class SqliteGrantStore:
    """Implementation of GrantStore: stores OAuth grants in SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def add_grant(self, grant: Grant) -> None:
        oldest = format_rfc3339(self._database.runtime.now() - _RETAINED)

        def insert_grant(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM oauth_grants WHERE expires_at < ?", (oldest,))
            row = (
                *(grant.grant_id, grant.member_id, grant.token_id, grant.api_key_id, format_rfc3339(grant.expires_at)),
                *(_has_unrecorded_end(grant), _grant_to_json_text(grant)),
            )
            connection.execute("INSERT INTO oauth_grants VALUES (?,?,?,?,?,?,1,?)", row)

        with _convert_sqlite_errors():
            await self._database.write(insert_grant)

    async def find_grant(self, grant_id: str) -> StoredGrant | None:
        sql = "SELECT content, version FROM oauth_grants WHERE grant_id = ?"
        with _convert_sqlite_errors():
            row = await self._database.read(lambda connection: connection.execute(sql, (grant_id,)).fetchone())
        return None if row is None else StoredGrant(grant_from_json(json.loads(row[0])), str(row[1]))

    async def try_replace_grant(self, before: StoredGrant, after: Grant) -> bool:
        sql = (
            "UPDATE oauth_grants SET version = version + 1, expires_at = ?, unrecorded = ?, content = ? "
            "WHERE grant_id = ? AND version = ?"
        )
        arguments = (
            format_rfc3339(after.expires_at),
            _has_unrecorded_end(after),
            _grant_to_json_text(after),
            after.grant_id,
            int(before.version),
        )
        with _convert_sqlite_errors():
            changed: int = await self._database.write(lambda connection: connection.execute(sql, arguments).rowcount)
        return changed == 1

    async def list_active_grants(self, member_id: str | None = None) -> Sequence[Grant]:
        at = self._database.runtime.now()
        query: _Query = (
            (_FOR_ALL, (format_rfc3339(at),)) if member_id is None else (_FOR_MEMBER, (member_id, format_rfc3339(at)))
        )
        return await self._list_grants(query, lambda grant: grant.is_active(at))

    async def list_grants_of_credential(self, credential_id: str) -> Sequence[Grant]:
        arguments = (credential_id, format_rfc3339(self._database.runtime.now()))
        return await self._list_grants((_FOR_ANCESTOR, arguments), lambda grant: grant.end is None)

    async def list_grants_with_unrecorded_end(self) -> Sequence[StoredGrant]:
        with _convert_sqlite_errors():
            rows = await self._database.read(lambda connection: connection.execute(_UNRECORDED).fetchall())
        return [StoredGrant(_grant_from_row(row), str(row[1])) for row in rows]

    async def _list_grants(self, query: _Query, is_wanted: Callable[[Grant], bool]) -> Sequence[Grant]:
        """Return the grants that a query finds and for which ``is_wanted`` returns True, in the order of the query."""

        def find_grants(connection: sqlite3.Connection) -> Sequence[Grant]:
            # In the thread of the database, because parsing thousands of grants would block the event loop.
            return list(filter(is_wanted, map(_grant_from_row, connection.execute(*query))))

        with _convert_sqlite_errors():
            return await self._database.read(find_grants)


def _grant_to_json_text(grant: Grant) -> str:
    return json.dumps(grant_to_json(grant), ensure_ascii=False)


def _has_unrecorded_end(grant: Grant) -> bool:
    return grant.end is not None and not grant.end.is_recorded


def _grant_from_row(row: tuple[Any, ...]) -> Grant:
    return grant_from_json(json.loads(row[0]))


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("CREDENTIALS_UNAVAILABLE", "the credential store")
