"""Tests of Idempotency-Keys."""

from datetime import timedelta
from pathlib import Path

import pytest

from shared.backends.embedded.idempotency import SCHEMA, SqliteIdempotencyStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.errors import WorkspaceError
from shared.idempotency.keys import MAX_KEY_LENGTH, IdempotencyKeys, build_claim, hash_key, reject_reused_key
from tests.virtual_time import VirtualTime


def test_each_caller_and_operation_has_separate_keys() -> None:
    """The stored hash of an Idempotency-Key depends on the caller, the operation and the key."""
    names = [("a", "x", "1"), ("b", "x", "1"), ("a", "y", "1"), ("a", "x", "2")]
    assert len({hash_key(*name) for name in names}) == len(names)


@pytest.mark.parametrize("key", ["", "  ", "a\nb", "\x00", "k" * (MAX_KEY_LENGTH + 1)])
def test_an_invalid_idempotency_key_is_rejected(key: str) -> None:
    """An Idempotency-Key that is blank, too long or not printable is rejected with the header's name."""
    with pytest.raises(WorkspaceError) as caught:
        hash_key("a", "x", key)
    assert "'field': 'Idempotency-Key'" in str(caught.value.members["errors"])


def test_an_idempotency_key_is_valid_for_one_request() -> None:
    """An Idempotency-Key can be used again only for the same request."""
    reject_reused_key(build_claim(b"same", "1"), build_claim(b"same", "2"))
    with pytest.raises(WorkspaceError) as caught:
        reject_reused_key(build_claim(b"same", "1"), build_claim(b"other", "1"))
    assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"


async def test_only_the_first_request_with_a_key_is_marked_as_the_first(tmp_path: Path) -> None:
    """A repeated request gets the append id of the first one, and is not the first one."""
    database = SqliteDatabase(tmp_path / "keys.sqlite", SCHEMA)
    keys = IdempotencyKeys(SqliteIdempotencyStore(database))
    first, again = [await keys.claim_append_id("ann", "POST", "key", b"same") for _ in range(2)]
    await database.close()
    assert (first.is_first, again.is_first) == (True, False)
    assert first.append_id == again.append_id


async def test_an_append_id_is_stored_for_24_hours(tmp_path: Path) -> None:
    """A request repeated within 24 hours gets the append id of the first one; a later request gets a new one."""
    database, time = SqliteDatabase(tmp_path / "keys.sqlite", SCHEMA), VirtualTime()
    keys = IdempotencyKeys(SqliteIdempotencyStore(database), runtime=time.runtime)
    first = await keys.claim_append_id("ann", "POST", "key", b"same")
    time.advance(timedelta(hours=23, minutes=59).total_seconds())
    repeated = await keys.claim_append_id("ann", "POST", "key", b"same")
    time.advance(timedelta(minutes=2).total_seconds())
    late = await keys.claim_append_id("ann", "POST", "key", b"same")
    await database.close()
    assert (repeated.append_id, repeated.is_first, late.is_first) == (first.append_id, False, True)
