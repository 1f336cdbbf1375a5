"""Tests of the stores that several services share."""

from shared.wiring import Services
from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_shared_stores(find_store_classes: Choice) -> None:
    """The setting STORES selects the shared stores; only stores on the local disk have a space limit."""
    assert find_store_classes(lambda services: services.backends.disk) == ("FolderDisk", "UnlimitedDisk")
    assert find_store_classes(lambda services: services.backends.job_leases) == (
        "SqliteJobLeaseStore",
        "CosmosJobLeaseStore",
    )


async def test_blobs_of_different_containers_are_separate(local_services: Services) -> None:
    """Blobs with the same name in different containers are different blobs."""
    first, second = (local_services.backends.build_blob_store(name) for name in ("one", "two"))
    await first.create_if_missing("a", b"1")
    assert [blob.name async for blob in second.list("")] == []
    assert await first.read("a") == b"1"


async def test_the_file_of_rate_limits_flushes_checkpoints(local_services: Services) -> None:
    """Checkpoints of the file of rate limits are flushed to disk, so that a power cut cannot damage the file."""
    normal = 1
    database = local_services.backends.limits_file
    assert await database.write(lambda connection: connection.execute("PRAGMA synchronous").fetchone()) == (normal,)
