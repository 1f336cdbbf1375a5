"""The tables of DATA_DIR/durable.sqlite."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS instances (
    id TEXT PRIMARY KEY, execution TEXT NOT NULL, name TEXT NOT NULL, version TEXT, input TEXT, output TEXT,
    custom_status TEXT, status TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    parent_id TEXT, parent_execution TEXT, parent_task INTEGER, progress TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE TABLE IF NOT EXISTS history (
    number INTEGER PRIMARY KEY AUTOINCREMENT, instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    event TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS history_of_instance ON history (instance, number);
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    kind TEXT NOT NULL, name TEXT, due TEXT NOT NULL, event TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS messages_of_instance ON messages (instance, due, number);
CREATE INDEX IF NOT EXISTS messages_due ON messages (kind, due);
CREATE TABLE IF NOT EXISTS waits (
    instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE, name TEXT NOT NULL,
    PRIMARY KEY (instance, name)
) STRICT;
CREATE TABLE IF NOT EXISTS activities (
    number INTEGER PRIMARY KEY AUTOINCREMENT, instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    execution TEXT NOT NULL, task INTEGER NOT NULL, name TEXT NOT NULL, input TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS activities_of_instance ON activities (instance);
"""
"""``name`` of a message is that of a raised event or the id of a timer; ``waits`` has the names that are waited for."""
