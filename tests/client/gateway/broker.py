"""Mosquitto, the MQTT broker that the tests run as a separate process."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from paho.mqtt import publish

MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
NO_MOSQUITTO = "mosquitto is not installed (Debian: apt-get install mosquitto)"
_START_SECONDS, _STOP_SECONDS = 20, 20


class Broker:
    """MQTT broker Mosquitto with its own folder, so that client sessions survive a restart.

    Args:
        folder: folder of the configuration and of the stored sessions.
        lines: additional configuration lines for the listener.
    """

    def __init__(self, folder: Path, *lines: str) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        configuration = [
            # As root, mosquitto would change to a user that cannot write into the folder.
            *(["user root"] if os.geteuid() == 0 else []),
            "log_dest stderr",
            "persistence true",
            f"persistence_location {folder}/",
            "autosave_interval 1",
            "autosave_on_changes true",
            "max_queued_messages 0",
            f"listener {self.port} 127.0.0.1",
            *(lines or ["allow_anonymous true"]),
        ]
        (folder / "mosquitto.conf").write_text("\n".join(configuration) + "\n", encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Broker":
        """Start the broker and return when it accepts connections."""
        assert MOSQUITTO is not None
        command = [MOSQUITTO, "-c", str(self._folder / "mosquitto.conf")]
        with (self._folder / "log").open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port)):
                return self
            time.sleep(0.01)
        raise AssertionError((self._folder / "log").read_text(encoding="utf-8"))

    def stop(self) -> None:
        """Stop the broker with SIGTERM, as a service manager does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_STOP_SECONDS)
            self._process = None

    def publish(self, *messages: tuple[str, bytes], retain: bool = False) -> None:
        """Publish messages at quality of service 1, and wait until the broker has acknowledged them."""
        packets: Any = [(topic, payload, 1, retain) for topic, payload in messages]
        publish.multiple(packets, hostname="127.0.0.1", port=self.port)
