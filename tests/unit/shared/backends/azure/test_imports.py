"""Tests that Azure SDKs are imported at their first use."""

import subprocess
import sys

_SCRIPT = """
import asyncio, sys, threading
from shared.backends.azure.event_hubs import EventHubsSender
from shared.backends.azure.web_pubsub import WebPubSub
from shared.errors import WorkspaceError
from shared.telemetry.models import HubMessage

loaded = {}

class Finder:
    def find_spec(self, name, path=None, target=None):
        loaded.setdefault(name, threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Finder())

async def publish():
    service = WebPubSub("http://127.0.0.1:9", "live", "key")
    sender = EventHubsSender("unused.invalid", "", timeout_seconds=0.01)
    for use in (service.publish("group", b"{}"), sender.send("hub", [HubMessage(b"{}", "key", {})])):
        try:
            await use
        except WorkspaceError:
            pass
    await service.close()
    await sender.close()

asyncio.run(publish())
large = ("aiohttp", "azure.core.pipeline", "azure.messaging.webpubsubservice", "azure.eventhub", "azure.identity")
print(*(f"{name}:{loaded.get(name)}" for name in large))
"""


def test_sdks_are_imported_outside_the_event_loop() -> None:
    """A worker thread imports the SDKs of live streams and event hubs, so that no request waits for it."""
    run = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert [each.rpartition(":")[2] for each in run.stdout.split()] == ["False"] * 5, run.stdout
