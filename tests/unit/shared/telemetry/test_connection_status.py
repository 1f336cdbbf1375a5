"""Tests of the status of connections."""

from datetime import UTC, datetime

import pytest

from shared.catalog.models import Connection
from shared.telemetry.connection_status import (
    ConnectionStatuses,
    connection_statistics_to_json,
    reset_connection_statuses,
)
from shared.telemetry.event_hub_sources import parse_event_hub_sources
from shared.telemetry.ports import ConnectionState
from tests.unit.shared.telemetry.fakes import States

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
CONNECTED = ConnectionState("CONNECTED", 7, AT, 2)
STATUSES = ConnectionStatuses(parse_event_hub_sources("press/oi,oven/$Default"))


@pytest.mark.parametrize(
    ("fields", "state", "status"),
    [
        ({}, None, "CONNECTING"),
        ({}, CONNECTED, "CONNECTED"),
        ({"enabled": False}, CONNECTED, "DISCONNECTED"),
        ({"source": {"eventHub": "press", "consumerGroup": "oi"}}, CONNECTED, "CONNECTED"),
        ({"source": {"eventHub": "oven"}}, None, "CONNECTING"),
        ({"source": {"eventHub": "press"}}, CONNECTED, "ERROR"),
        ({"source": {"eventHub": "other", "consumerGroup": "oi"}}, None, "ERROR"),
        ({"source": {"eventHub": "other"}, "enabled": False}, None, "DISCONNECTED"),
    ],
)
def test_a_connection_whose_event_hub_is_not_read_has_status_error(
    fields: dict[str, object], state: ConnectionState | None, status: str
) -> None:
    """If the deployment does not read a connection's Event Hub, the connection has the status error with a reason."""
    named = {"lookup": "a", "name": "A", "type": "CLOUD_EVENT_HUB", **fields}
    derived = STATUSES.derive_status(Connection.model_validate(named), state)
    assert derived.status == status
    assert (derived.reason is None) == (status != "ERROR")
    assert derived.reason is None or "EVENT_HUB_SOURCES" in derived.reason


async def test_only_a_stored_status_is_reset() -> None:
    """A reset stores the status connecting for connections that have another stored status, and for no others."""
    states = States()
    await states.set_status(["rig", "press"], "CONNECTED")
    await states.set_status(["oven"], "CONNECTING")
    await reset_connection_statuses(states, ["rig", "oven", "missing"])
    assert states.statuses[3:] == [("rig", "CONNECTING")]


def test_statistics_count_received_messages() -> None:
    """The statistics of a connection have the number of received messages, which is 0 without a stored state."""
    assert connection_statistics_to_json(None) == {"messagesReceived": 0, "lastMessage": None, "typeMismatches": 0}
    assert connection_statistics_to_json(CONNECTED) == {
        "messagesReceived": 7,
        "lastMessage": "2026-01-05T08:00:00.000000Z",
        "typeMismatches": 2,
    }
