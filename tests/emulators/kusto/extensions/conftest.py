"""One emulator for the tests of all modules of this folder, which only send queries."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulators.kusto.endpoints import Endpoint, end, start


@pytest.fixture(scope="package")
def endpoint(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """Return an emulator with the folder, for the tests of all modules, because a start takes over a second."""
    running = start(tmp_path_factory.mktemp("log") / "stderr", "--data", str(folder), "--memory-limit", "500MB")
    yield running
    assert end(running.process) == 0, running.log()
