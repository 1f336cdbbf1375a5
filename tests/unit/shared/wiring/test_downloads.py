"""Tests of the selection of stores for background jobs."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_job_stores(find_store_classes: Choice) -> None:
    """The setting STORES selects the stores; on Azure, the progress of the archive is unknown."""
    assert find_store_classes(lambda services: services.downloads.jobs) == ("SqliteJobStore", "CosmosJobStore")
    assert find_store_classes(lambda services: services.downloads.archive_progress) == (
        "HubArchiveProgress",
        "UnknownArchiveProgress",
    )
