"""The service as the official clients see it."""

from azure.messaging.webpubsubservice.aio import WebPubSubServiceClient

from tests.local.web_pubsub.serving import Connect


async def test_group_messages_reach_whoever_is_in_the_group(plain: WebPubSubServiceClient, join: Connect) -> None:
    """A message to a group reaches its members as the bytes that were sent, and nobody else."""
    inside, outside = await join("a/b ü"), await join("other")
    await plain.send_to_group("a/b ü", {"n": 1})
    await plain.send_to_group("other", "text", content_type="text/plain")
    assert await inside.recv() == '{"n": 1}'
    assert await outside.recv() == "text"
