"""Benchmark of the edge gateway: time from sending MQTT messages until their rows are in the telemetry table.

The comparison with HTTP uses the time from the first message to the last row, because rows already appear while
messages are still being sent.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, ToolMissingError
from bench.ingest import BATCH, CONNECTIONS, build_messages, wait_for_rows
from bench.mqtt_publisher import publish_messages
from bench.running import MEMBER, ROOT, RunningService, call_service, post_bodies_and_measure_seconds, run_service

MESSAGES = 100_000
RATE, SECONDS = 5_000, 60
LEAST_RATIO = 0.7
MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
_WAIT_SECONDS = 300


def measure_gateway() -> Iterator[Figure]:
    """Post messages over HTTP, send the same messages over MQTT, then send MQTT messages at a given rate.

    Raises:
        ToolMissingError: the MQTT broker mosquitto is not installed.
    """
    if MOSQUITTO is None:
        raise ToolMissingError("Mosquitto is not installed (Debian: apt-get install mosquitto)")
    batches = list(build_messages(MESSAGES, BATCH))
    posted = _post_and_measure_seconds([json.dumps(batch).encode() for batch in batches])
    sent = _publish_and_measure_seconds([json.dumps(message).encode() for batch in batches for message in batch], 0)
    detail = {
        "messages": MESSAGES,
        "posted": {"accepted": round(MESSAGES / posted.accepted), "rows": round(MESSAGES / posted.rows)},
        "gateway": {"accepted": round(MESSAGES / sent.accepted), "rows": round(MESSAGES / sent.rows)},
    }
    yield Figure("gateway_to_http", posted.rows / sent.rows, "ratio", at_least=LEAST_RATIO, detail=detail)
    count = RATE * SECONDS
    paced = [json.dumps(message).encode() for batch in build_messages(count, BATCH) for message in batch]
    took = _publish_and_measure_seconds(paced, RATE)
    yield Figure("gateway_paced", count / took.accepted, "events/s", detail={"messages": count, "rate": RATE})


@dataclass(frozen=True, slots=True)
class _SecondsUntilAcceptedAndStored:
    """Seconds until the service has accepted all messages, and until all their rows are in the telemetry table."""

    accepted: float
    rows: float


def _post_and_measure_seconds(bodies: list[bytes]) -> _SecondsUntilAcceptedAndStored:
    with run_service() as running:
        started = time.perf_counter()
        accepted = post_bodies_and_measure_seconds(
            f"{running.url}/oi-api/telemetry/line", running.headers, bodies, CONNECTIONS
        )
        wait_for_rows(running, MESSAGES)
        return _SecondsUntilAcceptedAndStored(accepted, time.perf_counter() - started)


def _publish_and_measure_seconds(payloads: list[bytes], messages_per_second: int) -> _SecondsUntilAcceptedAndStored:
    """Publish messages over MQTT at a rate (0 for the maximum); return the seconds until they were accepted and stored.

    Raises:
        ValueError: if a message was lost or stored twice.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)))
        running = stack.enter_context(run_service())
        broker = stack.enter_context(_run_broker_and_yield_port(folder))
        metrics = stack.enter_context(_run_gateway_and_yield_metrics_url(folder, running, broker))
        started = time.perf_counter()
        publish_messages(broker, "plant/line", payloads, messages_per_second)
        _wait_until_messages_sent(metrics, len(payloads))
        accepted = time.perf_counter() - started
        wait_for_rows(running, len(payloads))
        rows = time.perf_counter() - started
        query = "Telemetry | summarize n = count() by MessageId | summarize Rows = sum(n), Ids = count()"
        reply: object = call_service(running, "/oi-api/warm-queries", {"query": query})["results"]
    if reply != [{"Rows": len(payloads), "Ids": len(payloads)}]:
        raise ValueError(
            f"the table must have one row and one message id for each of {len(payloads)} messages, but it has {reply}"
        )
    return _SecondsUntilAcceptedAndStored(accepted, rows)


@contextmanager
def _run_broker_and_yield_port(folder: Path) -> Iterator[int]:
    """Context manager: run an MQTT broker on a free port of 127.0.0.1."""
    port = _find_free_port()
    configuration = folder / "mosquitto.conf"
    configuration.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
    with subprocess.Popen([str(MOSQUITTO), "-c", str(configuration)], stderr=subprocess.DEVNULL) as process:
        try:
            yield port
        finally:
            process.terminate()


@contextmanager
def _run_gateway_and_yield_metrics_url(folder: Path, running: RunningService, broker_port: int) -> Iterator[str]:
    """Context manager: run the edge gateway; yield the URL of its metrics when it is connected to the broker."""
    metrics = _find_free_port()
    configuration = {
        "service": {"url": running.url},
        "source": {"kind": "mqtt", "host": "127.0.0.1", "port": broker_port, "clientId": "bench"},
        "routes": [{"topic": "plant/{connection}", "connection": "{connection}"}],
        "spool": {"path": str(folder / "spool.db")},
        "metrics": {"port": metrics},
    }
    path = folder / "gateway.yaml"
    path.write_text(json.dumps(configuration))
    key = json.loads((running.folder / "keys.json").read_text())[MEMBER]
    environment = {**os.environ, "OI_KEY": key, "PYTHONPATH": str(ROOT / "client" / "src")}
    command = [sys.executable, "-m", "oi", "gateway", "run", str(path)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None  # noqa: S101  it is a pipe
            for line in process.stderr:
                if "Connected to the broker" in line:
                    break
            yield f"http://127.0.0.1:{metrics}/metrics"
        finally:
            process.terminate()


def _wait_until_messages_sent(metrics_url: str, message_count: int) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        with urllib.request.urlopen(metrics_url, timeout=30) as reply:  # noqa: S310  our own
            found = re.search(r"^oi_gateway_sent_messages_total (\d+)$", reply.read().decode(), re.MULTILINE)
        if found and int(found[1]) >= message_count:
            return
        time.sleep(0.05)
    raise TimeoutError(f"the gateway sent fewer than {message_count} messages in {_WAIT_SECONDS} s")


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
