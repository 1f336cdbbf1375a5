"""Tests of the edge gateway process between a real MQTT broker and a running service."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.client.gateway.broker import MOSQUITTO, NO_MOSQUITTO, Broker
from tests.service.conftest import WORKSPACE
from tests.service.local_service import ROOT, Service, wait_until

pytestmark = pytest.mark.skipif(MOSQUITTO is None, reason=NO_MOSQUITTO)
KILLS = 2
MESSAGES = 300
STORM_SECONDS = 60.0
RETRY_SECONDS = 30.0
"""Longest pause of the gateway before it tries an unreachable service again."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Yield a running MQTT broker."""
    started = Broker(tmp_path).start()
    yield started
    started.stop()


def write_configuration(service: Service, broker: Broker, folder: Path) -> Path:
    """Write a gateway configuration whose API key is bound to one connection and some devices, and return its path."""
    reply = service.create_client("editor@t").post(
        "/workspace/api/keys", json={"name": "gateway", "connections": ["lathe"], "devices": ["gw-*"]}
    )
    assert reply.status_code == 201, reply.text
    (folder / "key").write_text(reply.json()["apiKey"])
    path = folder / "gateway.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "service": {"url": service.url, "keyFile": str(folder / "key")},
                "source": {"kind": "mqtt", "host": "127.0.0.1", "port": broker.port, "clientId": "gw"},
                "routes": [{"topic": "hall/{line}/{device}", "connection": "{line}", "device": "{device}"}],
                "spool": {"path": str(folder / "spool.db")},
                "metrics": {"port": 0},
            }
        )
    )
    return path


def start_gateway(configuration: Path) -> "subprocess.Popen[str]":
    """Start the gateway and return when it is connected to the broker."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client" / "src")}
    process = subprocess.Popen(
        [sys.executable, "-m", "oi", "gateway", "run", str(configuration)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Connected to the broker" in line:
            return process
    raise AssertionError("".join(lines))


def stop_gateway(process: "subprocess.Popen[str]", number: signal.Signals) -> int:
    """Stop the gateway and return its exit code."""
    process.send_signal(number)
    assert process.stderr is not None
    process.stderr.read()
    process.stderr.close()
    return process.wait(30)


def test_each_message_is_stored_once_despite_gateway_kills(
    own_module_service: Service, broker: Broker, tmp_path: Path
) -> None:
    """If the gateway is killed several times and stopped once, each message without an id is stored exactly once."""
    configuration = write_configuration(own_module_service, broker, tmp_path)
    for part in range(KILLS + 1):
        gateway = start_gateway(configuration)
        values = range(part * MESSAGES, (part + 1) * MESSAGES)
        broker.publish(*[(f"hall/lathe/gw-{n % 2}", json.dumps({"value": n}).encode()) for n in values])
        code = stop_gateway(gateway, signal.SIGKILL if part < KILLS else signal.SIGTERM)
        assert code == (-signal.SIGKILL if part < KILLS else 0)
    gateway = start_gateway(configuration)
    expected = MESSAGES * (KILLS + 1)
    try:
        wait_for_values(own_module_service, expected)
    finally:
        stop_gateway(gateway, signal.SIGTERM)


def wait_for_values(service: Service, expected: int) -> None:
    """Wait until all values are stored, and check that each is stored once."""
    query = (
        "Telemetry | where DeviceId startswith 'gw-' | summarize n = count() by toint(Payload.value)"
        " | summarize Rows = sum(n), Values = count()"
    )
    caller = service.create_client("editor@t")

    def read_counts_of_values() -> dict[str, int]:
        counts: list[dict[str, int]] = caller.post("/oi-api/warm-queries", json={"query": query}).json()["results"]
        return counts[0]

    counts = wait_until(read_counts_of_values, lambda found: found["Values"] >= expected, RETRY_SECONDS + 30)
    assert counts == {"Rows": expected, "Values": expected}


@pytest.mark.soak
def test_random_faults_neither_lose_nor_duplicate_messages(broker: Broker, tmp_path: Path) -> None:
    """If gateway, service and broker fail in random order for a minute, each message is stored exactly once."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    service = Service(tmp_path / "data", WORKSPACE, {"PORT": port}).start()
    configuration = write_configuration(service, broker, tmp_path)
    gateway = start_gateway(configuration)
    sent, choices, until = 0, random.Random(7), time.monotonic() + STORM_SECONDS

    def publish_messages() -> None:
        nonlocal sent
        values = range(sent, sent + MESSAGES)
        broker.publish(*[(f"hall/lathe/gw-{n % 2}", json.dumps({"value": n}).encode()) for n in values])
        sent += MESSAGES

    while time.monotonic() < until:
        publish_messages()
        fault = choices.choice(("gateway", "broker", "service", "service and gateway"))
        if "service" in fault:
            service.kill()
        if "gateway" in fault:
            stop_gateway(gateway, signal.SIGKILL)
        if fault == "broker":
            broker.stop()
            broker.start()
        publish_messages()
        if "gateway" in fault:
            gateway = start_gateway(configuration)
        publish_messages()
        if "service" in fault:
            service.start()
    try:
        wait_for_values(service, sent)
    finally:
        stop_gateway(gateway, signal.SIGTERM)
        service.stop()
