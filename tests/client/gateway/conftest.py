"""Fixture: MQTT broker that the tests of the gateway share."""

from collections.abc import Iterator

import pytest

from tests.client.gateway.broker import MOSQUITTO, NO_MOSQUITTO, Broker


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yield the broker of the test session; each test uses its own topics and client ids."""
    if MOSQUITTO is None:
        pytest.skip(NO_MOSQUITTO)
    broker = Broker(tmp_path_factory.mktemp("broker")).start()
    yield broker
    broker.stop()
