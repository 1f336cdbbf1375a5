"""Tests of the event sender that adds traces to another sender."""

import pytest

from shared.errors import WorkspaceError
from shared.telemetry.instrumented_sender import InstrumentedSender
from shared.telemetry.models import HubMessage
from tests.unit.shared.telemetry.fakes import Hub

MESSAGES = [HubMessage(b"{}", "rig", {})]


class ClosableHub(Hub):
    """Hub that records that it was closed."""

    is_closed = False

    async def close(self) -> None:
        """Record the call."""
        self.is_closed = True


async def test_messages_and_errors_pass_through() -> None:
    """The traced sender returns the results and raises the errors of the wrapped sender."""
    hub = ClosableHub()
    sender = InstrumentedSender(hub, "eventhubs")
    await sender.send("telemetry", MESSAGES)
    assert hub.sends == [("telemetry", MESSAGES)]
    hub.down = True
    with pytest.raises(WorkspaceError):
        await sender.send("telemetry", MESSAGES)
    await sender.close()
    assert hub.is_closed
