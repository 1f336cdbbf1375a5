"""Fixture that starts a service for the pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.local_service import Service

WORKSPACE = Path(__file__).parents[1] / "service" / "workspace.yaml"


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that all tests of the run share."""
    running = Service(tmp_path_factory.mktemp("pages") / "data", WORKSPACE).start()
    yield running
    assert running.stop() == 0
