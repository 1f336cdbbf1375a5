"""Tests of the choice of the hub and of the store for the states of connections."""

from shared.telemetry.models import HubMessage
from shared.wiring import Services
from tests.unit.shared.wiring.conftest import Choice


def test_the_settings_choose_the_store(choose: Choice) -> None:
    """The counts of messages are stored where the other data of the workspace is."""
    assert choose(lambda services: services.telemetry.connection_states) == (
        "SqliteConnectionStates",
        "CosmosConnectionStates",
    )


async def test_the_local_hub_is_a_file(local: Services) -> None:
    """A message that was sent is in the file; the folder has no hub before."""
    hub = local.settings.data_dir / "hub.sqlite"
    assert not hub.exists()
    await local.telemetry.sender.send("telemetry", [HubMessage(b"{}", "rig", {})])
    assert hub.exists()
