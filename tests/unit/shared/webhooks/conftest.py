"""Fixtures of the tests of webhooks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.shared.webhooks.environment import WebhookServices, open_webhooks


@pytest.fixture
async def webhook_services(tmp_path: Path) -> AsyncIterator[WebhookServices]:
    """Provide the webhook services with an empty SQLite file."""
    async with open_webhooks(tmp_path / "webhooks.sqlite") as opened:
        yield opened
