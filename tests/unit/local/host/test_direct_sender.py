"""Tests of the sender that passes live messages to the Web PubSub emulator in the local host's process."""

from local.host.live_stream import LiveStreamGateway


async def ignore_call(*_: object) -> None:
    """Do nothing."""


async def test_groups_without_clients_have_no_streams() -> None:
    """A message to a group without clients is accepted, and the group counts as empty."""
    gateway = LiveStreamGateway(ignore_call, "k" * 40, lambda *_: None)
    await gateway.direct_sender.publish("pump", b"{}")
    assert not await gateway.direct_sender.has_streams("pump")
    await gateway.close()
