"""Tests of the stores of signatures in SQLite."""

import sqlite3
from contextlib import closing
from pathlib import Path

from shared.backends.embedded.signatures import SCHEMA, SqliteSignatureIndex
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.provenance.ports import ChainKey, Target
from shared.signatures.ports import IndexProgress, SignatureFilter

CHAIN = ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
EARLIER = """
CREATE TABLE signatures (place TEXT PRIMARY KEY, user_id TEXT NOT NULL, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE signature_progress (
  target TEXT NOT NULL, scope TEXT NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (target, scope)
) WITHOUT ROWID;
CREATE TABLE signature_index (id INTEGER PRIMARY KEY CHECK (id = 1), complete_to TEXT NOT NULL);
INSERT INTO signatures VALUES ('2026-01-05T08:00:00.000000Z 0 000000000003', 'ann', '{}');
INSERT INTO signature_progress VALUES ('DomainAmendments', 'line-1', 3);
INSERT INTO signature_index VALUES (1, '2026-01-05T08:00:00.000000Z');
"""


async def test_the_index_of_an_earlier_version_is_built_again(tmp_path: Path) -> None:
    """An index without the hashes of its last records is empty for this version, which builds it from the chains."""
    path = tmp_path / "workspace.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(EARLIER)
    database = SqliteDatabase(path, SCHEMA)
    index = SqliteSignatureIndex(database)
    assert await index.read_index_end_time() == ""
    assert await index.read_progress(CHAIN) == IndexProgress()
    assert list(await index.list_signatures(SignatureFilter(), "", 10)) == []
    await database.close()
    with closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert not names & {"signatures", "signature_progress", "signature_index"}
