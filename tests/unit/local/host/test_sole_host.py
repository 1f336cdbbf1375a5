"""Tests of the lock that allows one host with a query engine per data directory."""

from pathlib import Path
from typing import Any

from shared.backends.embedded import quotas
from shared.backends.embedded.quotas import SqliteQuotaStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.fair_use.ports import Purpose

APP = """
@app.route(route="x")
async def x(req: func.HttpRequest) -> str:
    return "x"
"""


def test_a_second_host_on_a_data_directory_is_rejected(start_host: Any) -> None:
    """A second host on a data directory exits with 1 and names the setting for another directory."""
    first = start_host(APP, KUSTO_URI="")
    second = start_host(APP, KUSTO_URI="", ready=False)
    assert second.process.wait(timeout=30) == 1
    (line,) = second.read_log().splitlines()
    assert str(first.data_dir) in line
    assert "--data-dir (DATA_DIR)" in line
    assert first.terminate() == 0


def test_the_next_host_waits_until_the_previous_one_has_ended(start_host: Any) -> None:
    """If the previous host of a data directory is stopping or was killed, the next host waits until it has ended."""
    first = start_host(APP, KUSTO_URI="")
    second = start_host(APP, KUSTO_URI="", ready=False)
    assert first.terminate() == 0
    second.wait_until_ready()
    second.kill()
    assert start_host(APP, KUSTO_URI="").terminate() == 0


def test_hosts_with_an_external_query_engine_share_a_folder(start_host: Any) -> None:
    """Hosts with an external query engine (KUSTO_URI) can share a data directory."""
    first, second = start_host(APP), start_host(APP)
    assert (first.terminate(), second.terminate()) == (0, 0)


async def test_a_further_host_does_not_release_the_live_streams_of_a_running_host(
    start_host: Any, tmp_path: Path
) -> None:
    """A host releases the quota of live streams at its start, unless another host of its folder runs."""
    first = start_host(APP)
    database = SqliteDatabase(tmp_path / "data" / "rate-limits.sqlite", quotas.SCHEMA)
    store = SqliteQuotaStore(database)
    await store.try_reserve("ann", Purpose.STREAMS, "1", at_unix_seconds=0.0, max_reservations=1)
    second = start_host(APP)
    assert len(await store.list_reservations("ann", Purpose.STREAMS)) == 1
    assert (first.terminate(), second.terminate()) == (0, 0)
    third = start_host(APP)
    assert await store.list_reservations("ann", Purpose.STREAMS) == []
    assert third.terminate() == 0
    await database.close()
