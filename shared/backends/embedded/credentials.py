"""API keys, issued tokens and the pending audit events of revocations in SQLite.

A write transaction adds a token or key only if its parent is not revoked, and a write transaction revokes a credential
with its descendants. SQLite runs write transactions one after the other. If the addition is first, the revocation finds
the new token; if the revocation is first, the addition is rejected. The transaction of a revocation also stores its
audit event.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

from shared.auth.access_events import AccessEvent, parse_stored_event
from shared.auth.api_keys import build_too_many_keys_error
from shared.auth.ports import RETENTION_AFTER_EXPIRY, ApiKey, Credentials, IssuedToken
from shared.auth.principals import build_revoked_credential_error
from shared.auth.rights import select_known_rights
from shared.auth.telemetry_binding import binding_from_json
from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.timestamps import format_rfc3339, parse_rfc3339

SCHEMA = """
CREATE TABLE IF NOT EXISTS credential_version (only INTEGER PRIMARY KEY CHECK (only = 1), version INTEGER NOT NULL);
INSERT OR IGNORE INTO credential_version VALUES (1, 0);
CREATE TABLE IF NOT EXISTS api_keys (
  key_id TEXT PRIMARY KEY, salt BLOB NOT NULL, digest BLOB NOT NULL, principal TEXT NOT NULL, name TEXT NOT NULL,
  rights TEXT, created_at TEXT NOT NULL, expires_at TEXT, last_used_at TEXT, revoked_at TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS issued_tokens (
  token_id TEXT PRIMARY KEY, principal TEXT NOT NULL, expires_at TEXT NOT NULL, parent TEXT NOT NULL, revoked_at TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS api_key_creators (key_id TEXT PRIMARY KEY, creators TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS api_key_bindings (key_id TEXT PRIMARY KEY, binding TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pending_access_events (
  position INTEGER PRIMARY KEY AUTOINCREMENT, append_id TEXT NOT NULL UNIQUE, event TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS issued_tokens_by_parent ON issued_tokens (parent);
CREATE INDEX IF NOT EXISTS issued_tokens_by_expiry ON issued_tokens (expires_at);
"""


_REVOKE_TOKENS = """
WITH RECURSIVE line (id) AS (
  SELECT ? UNION SELECT token_id FROM issued_tokens JOIN line ON issued_tokens.parent = line.id
)
UPDATE issued_tokens SET revoked_at = ? WHERE token_id IN (SELECT id FROM line) AND revoked_at IS NULL
"""


_IS_REVOKED = """
SELECT EXISTS (SELECT 1 FROM api_keys WHERE key_id = ?1 AND revoked_at IS NOT NULL)
    OR EXISTS (SELECT 1 FROM issued_tokens WHERE token_id = ?1 AND revoked_at IS NOT NULL)
"""
_COUNT_UNREVOKED = "SELECT count(*) FROM api_keys WHERE principal = ? AND revoked_at IS NULL"
_SET_CREATORS = "INSERT OR REPLACE INTO api_key_creators VALUES (?,?)"
_DELETE_CREATORS = "DELETE FROM api_key_creators WHERE key_id = ?"
_SET_BINDING = "INSERT OR REPLACE INTO api_key_bindings VALUES (?,?)"
type _Statement = tuple[str, tuple[Any, ...]]
"""SQL statement and its parameters."""

_INSERT_KEY = "INSERT INTO api_keys VALUES (?,?,?,?,?,?,?,?,?,?)"


class SqliteCredentialStore:
    """Implementation of CredentialStore: stores API keys, issued tokens and revocations in SQLite.

    Timestamps are text of fixed width, which sorts by time.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def read_version(self) -> int:
        with _convert_sqlite_errors():
            return await self._database.read(_read_version)

    async def load(self) -> Credentials:
        with _convert_sqlite_errors():
            return await self._database.read(partial(_load_credentials, self._compute_earliest_retained_expiry()))

    async def add_or_get_key(
        self, key: ApiKey, parent_id: str = "", *, max_unrevoked_keys: int | None = None
    ) -> ApiKey:
        def insert_key_if_missing(connection: sqlite3.Connection) -> ApiKey:
            stored = _find_key(connection, key.key_id)
            if stored is None:
                _require_not_revoked(connection, parent_id)
                _require_below_key_limit(connection, key.principal, max_unrevoked_keys)
                _execute_and_increment_version(connection, _build_statements_to_store_key(key))
            return stored or key

        with _convert_sqlite_errors():
            stored = await self._database.write(insert_key_if_missing)
            if stored.digest != key.digest:
                raise sqlite3.IntegrityError(f"another API key with the id {key.key_id} is stored")
        return stored

    async def find_key(self, key_id: str) -> ApiKey | None:
        with _convert_sqlite_errors():
            return await self._database.read(lambda connection: _find_key(connection, key_id))

    async def is_revoked(self, credential_id: str) -> bool:
        with _convert_sqlite_errors():
            return await self._database.read(lambda connection: _is_revoked(connection, credential_id))

    async def revoke_key_and_find_pending_event(
        self, key_id: str, at: datetime, event: AccessEvent | None = None
    ) -> AccessEvent | None:
        sql = "UPDATE api_keys SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL"
        return await self._revoke_and_find_pending_event(
            event, (sql, (format_rfc3339(at), key_id)), (_REVOKE_TOKENS, (key_id, format_rfc3339(at)))
        )

    async def store_last_use(self, key_id: str, at: datetime) -> None:
        sql = "UPDATE api_keys SET last_used_at = ? WHERE key_id = ?"
        with _convert_sqlite_errors():
            await self._database.write(lambda connection: connection.execute(sql, (format_rfc3339(at), key_id)))

    async def add_token(self, token: IssuedToken) -> None:
        def insert_token(connection: sqlite3.Connection) -> None:
            _require_not_revoked(connection, token.parent)
            since = format_rfc3339(self._compute_earliest_retained_expiry())
            connection.execute("DELETE FROM issued_tokens WHERE expires_at < ?", (since,))
            row = (token.token_id, token.principal, format_rfc3339(token.expires_at), token.parent)
            connection.execute("INSERT INTO issued_tokens VALUES (?,?,?,?,NULL)", row)

        with _convert_sqlite_errors():
            await self._database.write(insert_token)

    async def find_token(self, token_id: str) -> IssuedToken | None:
        sql = "SELECT principal, expires_at, parent FROM issued_tokens WHERE token_id = ?"
        with _convert_sqlite_errors():
            row = await self._database.read(lambda connection: connection.execute(sql, (token_id,)).fetchone())
        return None if row is None else IssuedToken(token_id, row[0], parse_rfc3339(row[1]), row[2])

    async def revoke_token_and_find_pending_event(
        self, token_id: str, at: datetime, event: AccessEvent | None = None
    ) -> AccessEvent | None:
        return await self._revoke_and_find_pending_event(event, (_REVOKE_TOKENS, (token_id, format_rfc3339(at))))

    async def list_pending_events(self) -> Sequence[AccessEvent]:
        # As bytes, because a text that is not UTF-8 would make the whole query fail.
        sql = "SELECT CAST(event AS BLOB) FROM pending_access_events ORDER BY position"
        with _convert_sqlite_errors():
            rows = await self._database.read(lambda connection: connection.execute(sql).fetchall())
        return [event for (stored,) in rows if (event := parse_stored_event(stored)) is not None]

    async def delete_pending_event(self, append_id: str) -> None:
        sql = "DELETE FROM pending_access_events WHERE append_id = ?"
        with _convert_sqlite_errors():
            await self._database.write(lambda connection: connection.execute(sql, (append_id,)))

    def _compute_earliest_retained_expiry(self) -> datetime:
        """Return the earliest expiry of tokens that are still stored; tokens that expired earlier are deleted."""
        return self._database.runtime.now() - RETENTION_AFTER_EXPIRY

    async def _revoke_and_find_pending_event(
        self, event: AccessEvent | None, *statements: _Statement
    ) -> AccessEvent | None:
        def revoke(connection: sqlite3.Connection) -> AccessEvent | None:
            _execute_and_increment_version(connection, statements)
            return None if event is None else _add_or_get_pending_event(connection, event)

        with _convert_sqlite_errors():
            return await self._database.write(revoke)


def _is_revoked(connection: sqlite3.Connection, credential_id: str) -> bool:
    return bool(connection.execute(_IS_REVOKED, (credential_id,)).fetchone()[0])


def _require_not_revoked(connection: sqlite3.Connection, credential_id: str) -> None:
    if _is_revoked(connection, credential_id):
        raise build_revoked_credential_error()


def _require_below_key_limit(connection: sqlite3.Connection, principal: str, max_unrevoked_keys: int | None) -> None:
    if max_unrevoked_keys is None:
        return
    if connection.execute(_COUNT_UNREVOKED, (principal,)).fetchone()[0] >= max_unrevoked_keys:
        raise build_too_many_keys_error(max_unrevoked_keys)


def _execute_and_increment_version(connection: sqlite3.Connection, statements: Sequence[_Statement]) -> None:
    for sql, arguments in statements:
        connection.execute(sql, arguments)
    connection.execute("UPDATE credential_version SET version = version + 1")


def _add_or_get_pending_event(connection: sqlite3.Connection, event: AccessEvent) -> AccessEvent:
    """Store a pending event unless one with its append id is stored; return the stored event."""
    sql = "INSERT OR IGNORE INTO pending_access_events (append_id, event) VALUES (?,?)"
    connection.execute(sql, (event.append_id, event.to_json_text()))
    sql = "SELECT CAST(event AS BLOB) FROM pending_access_events WHERE append_id = ?"
    return parse_stored_event(connection.execute(sql, (event.append_id,)).fetchone()[0]) or event


def _build_statements_to_store_key(key: ApiKey) -> Sequence[_Statement]:
    rights = None if key.rights is None else json.dumps(sorted(key.rights))
    row = (
        *(key.key_id, key.salt, key.digest, key.principal, key.name, rights),
        *(_format_optional_time(at) for at in (key.created_at, key.expires_at, key.last_used_at, key.revoked_at)),
    )
    binding = json.dumps(key.binding and key.binding.to_json())
    return (_INSERT_KEY, row), _build_statement_to_store_creators(key), (_SET_BINDING, (key.key_id, binding))


def _build_statement_to_store_creators(key: ApiKey) -> _Statement:
    if key.creators is None:
        return _DELETE_CREATORS, (key.key_id,)
    return _SET_CREATORS, (key.key_id, json.dumps(key.creators))


def _convert_sqlite_errors() -> AbstractContextManager[None]:
    return convert_sqlite_errors("CREDENTIALS_UNAVAILABLE", "the credential store")


def _read_version(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT version FROM credential_version").fetchone()
    return int(row[0])


def _find_key(connection: sqlite3.Connection, key_id: str) -> ApiKey | None:
    def find_row(table: str, column: str) -> tuple[Any, ...] | None:
        sql = f"SELECT {column} FROM {table} WHERE key_id = ?"  # noqa: S608  the names are constants
        row: tuple[Any, ...] | None = connection.execute(sql, (key_id,)).fetchone()
        return row

    if (row := find_row("api_keys", "*")) is None:
        return None
    creators, binding = find_row("api_key_creators", "creators"), find_row("api_key_bindings", "binding")
    return _key_from_row(
        row, json.loads(creators[0]) if creators else None, json.loads(binding[0]) if binding else None
    )


def _load_credentials(earliest_expiry: datetime, connection: sqlite3.Connection) -> Credentials:
    creators = dict(connection.execute("SELECT key_id, creators FROM api_key_creators"))
    bindings = dict(connection.execute("SELECT key_id, binding FROM api_key_bindings"))
    keys = (
        _key_from_row(row, json.loads(creators.get(row[0], "null")), json.loads(bindings.get(row[0], "null")))
        for row in connection.execute("SELECT * FROM api_keys")
    )
    sql = "SELECT token_id FROM issued_tokens WHERE revoked_at IS NOT NULL AND expires_at >= ?"
    revoked = connection.execute(sql, (format_rfc3339(earliest_expiry),))
    return Credentials(
        _read_version(connection), {key.key_id: key for key in keys}, frozenset(row[0] for row in revoked)
    )


def _key_from_row(row: tuple[Any, ...], creators: Sequence[str] | None, binding: Mapping[str, Any] | None) -> ApiKey:
    key_id, salt, digest, principal, name, rights, *instants = row
    created_at, expires_at, last_used_at, revoked_at = (text and parse_rfc3339(text) for text in instants)
    parsed_rights = None if rights is None else select_known_rights(json.loads(rights))
    times = (created_at, expires_at, last_used_at, revoked_at)
    return ApiKey(
        *(key_id, salt, digest, principal, name, parsed_rights),
        *times,
        creators=None if creators is None else tuple(creators),
        binding=binding_from_json(binding),
    )


def _format_optional_time(instant: datetime | None) -> str | None:
    return None if instant is None else format_rfc3339(instant)
