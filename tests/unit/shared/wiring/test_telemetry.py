"""Tests of the selection of the hub and of the store for connection states."""

from shared.telemetry.models import HubMessage
from shared.wiring import Services
from tests.unit.shared.wiring.conftest import Choice


def test_the_setting_stores_selects_the_message_count_store(find_store_classes: Choice) -> None:
    """The setting STORES selects the store of message counts, of the same kind as the other stores."""
    assert find_store_classes(lambda services: services.telemetry.connection_states) == (
        "SqliteConnectionStates",
        "CosmosConnectionStates",
    )


async def test_the_local_hub_is_a_file(local_services: Services) -> None:
    """A sent message is in the file of the local hub, which is created with the first message."""
    hub = local_services.settings.data_dir / "hub.sqlite"
    assert not hub.exists()
    await local_services.telemetry.sender.send("telemetry", [HubMessage(b"{}", "rig", {})])
    assert hub.exists()
