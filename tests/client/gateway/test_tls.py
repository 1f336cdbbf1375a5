"""Tests of the TLS certificates of the connection to the broker."""

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oi.errors import ApiError
from oi.gateway.metrics import Metrics
from oi.gateway.sections import SettingsError
from oi.gateway.sources import SourceContext
from oi.gateway.sources.mqtt import MqttSource
from oi.gateway.sources.mqtt_connection import BrokerError
from oi.gateway.sources.mqtt_settings import parse_mqtt_settings

from tests.client.gateway.broker import MOSQUITTO, NO_MOSQUITTO, Broker
from tests.client.gateway.certificates import Authority
from tests.client.gateway.running import DroppingReceiver, EmptyMarkStore, FakeService, build_settings, open_gateway

# paho-mqtt leaves a socket whose handshake failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")


@dataclass
class SecuredBrokers:
    """MQTT brokers that require a client certificate, and the certificates for the tests."""

    authority: Authority
    good: Broker
    expired: Broker
    client: dict[str, str]


@pytest.fixture(scope="module")
def secured_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBrokers]:
    """Yield two brokers, one with a valid and one with an expired certificate."""
    if MOSQUITTO is None:
        pytest.skip(NO_MOSQUITTO)
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    brokers = []
    for name, days in (("good", 1), ("expired", -1)):
        certificate, key = authority.issue_certificate(name, days)
        lines = [f"cafile {authority.file}", f"certfile {certificate}", f"keyfile {key}"]
        (folder / name).mkdir()
        lines += ["require_certificate true", "use_identity_as_username true"]
        brokers.append(Broker(folder / name, *lines).start())
    certificate, key = authority.issue_certificate("client", 1)
    files = {"caFile": str(authority.file), "certificateFile": str(certificate), "keyFile": str(key)}
    yield SecuredBrokers(authority, brokers[0], brokers[1], files)
    for each in brokers:
        each.stop()


async def find_connection_error(folder: Path, broker: Broker, tls: dict[str, Any]) -> str:
    """Try to connect to the broker and return the error message."""
    settings = build_settings(folder, broker.port, "fails", tls=tls)
    context = SourceContext(["a"], DroppingReceiver(), EmptyMarkStore(), Metrics(), is_check=True)
    with pytest.raises((BrokerError, SettingsError, ApiError)) as raised:
        await asyncio.wait_for(MqttSource(parse_mqtt_settings(settings.source, is_check=True), context).run(), 30)
    text = str(raised.value)
    del raised
    gc.collect()
    return text


async def test_the_gateway_connects_with_a_client_certificate(secured_brokers: SecuredBrokers, tmp_path: Path) -> None:
    """The gateway connects with a client certificate; a metric contains the expiry of this certificate."""
    settings = build_settings(tmp_path, secured_brokers.good.port, "tls", tls=secured_brokers.client)
    async with open_gateway(settings, FakeService()) as metrics:
        assert "\noi_gateway_certificate_expires_timestamp_seconds " in metrics.format_prometheus_text()


async def test_the_error_names_an_expired_certificate_of_the_broker(
    secured_brokers: SecuredBrokers, tmp_path: Path
) -> None:
    """If the certificate of the broker has expired, the error states this."""
    text = await find_connection_error(tmp_path, secured_brokers.expired, secured_brokers.client)
    assert "The certificate of the broker" in text
    assert "certificate has expired" in text


async def test_a_broker_certificate_of_an_unknown_authority_is_rejected(
    secured_brokers: SecuredBrokers, tmp_path: Path
) -> None:
    """A broker is rejected if an unknown authority has issued its certificate."""
    text = await find_connection_error(tmp_path, secured_brokers.good, {})
    assert "The certificate of the broker" in text
    assert "expired" not in text


async def test_an_expired_client_certificate_is_reported_before_connecting(
    secured_brokers: SecuredBrokers, tmp_path: Path
) -> None:
    """An expired client certificate is reported before connecting, because the broker would give no reason."""
    certificate, key = secured_brokers.authority.issue_certificate("old", -2)
    text = await find_connection_error(
        tmp_path,
        secured_brokers.good,
        {**secured_brokers.client, "certificateFile": str(certificate), "keyFile": str(key)},
    )
    assert f"The client certificate {certificate} expired on" in text


async def test_the_error_suggests_a_missing_client_certificate(secured_brokers: SecuredBrokers, tmp_path: Path) -> None:
    """If the broker closes the connection without a reason, the error suggests that a client certificate is missing."""
    text = await find_connection_error(tmp_path, secured_brokers.good, {"caFile": secured_brokers.client["caFile"]})
    assert "Check the client certificate" in text or "was lost" in text


@pytest.mark.parametrize("name", ["caFile", "certificateFile"])
async def test_the_error_about_an_unreadable_certificate_names_the_file(
    secured_brokers: SecuredBrokers, tmp_path: Path, name: str
) -> None:
    """The error about an unreadable certificate file names the file."""
    text = await find_connection_error(
        tmp_path, secured_brokers.good, {**secured_brokers.client, name: str(tmp_path / "missing.pem")}
    )
    assert "cannot be read" in text
    assert "No such file" in text
