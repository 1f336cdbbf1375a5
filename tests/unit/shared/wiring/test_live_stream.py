"""Tests of authenticating events from Web PubSub, and of the store for the quota of streams."""

from pathlib import Path
from typing import Any

import pytest

from shared.settings import Settings
from shared.wiring import Services
from tests.unit.shared.wiring.conftest import Choice


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"WEB_PUBSUB_ACCESS_KEY": "k" * 32}, "SignedEvents"),
        ({"WEB_PUBSUB_ENDPOINT": "https://pubsub.example"}, "IdentifiedEvents"),
    ],
)
async def test_events_are_signed_or_have_a_token(tmp_path: Path, settings: dict[str, Any], kind: str) -> None:
    """If an access key is set, events must be signed; otherwise, they need the managed identity's token."""
    services = Services(Settings.read({"DATA_DIR": str(tmp_path), **settings}))
    assert type(services.live_stream.events).__name__ == kind
    await services.close()


def test_quota_of_streams_is_shared_by_instances(find_store_classes: Choice) -> None:
    """On Azure, all instances share the quota of streams; locally, the only process has its own."""
    assert find_store_classes(lambda services: services.live_stream._stream_quota_store) == (
        "SqliteQuotaStore",
        "CosmosQuotaStore",
    )
