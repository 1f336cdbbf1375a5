"""Tests of the selection of stores for background jobs."""

from tests.unit.shared.wiring.conftest import Choice


def test_the_settings_choose_the_stores(choose: Choice) -> None:
    """The settings select the stores; on Azure, the progress of the archive is unknown."""
    assert choose(lambda services: services.downloads.jobs) == ("SqliteJobStore", "CosmosJobStore")
    assert choose(lambda services: services.downloads.archive_progress) == (
        "HubArchiveProgress",
        "UnknownArchiveProgress",
    )
