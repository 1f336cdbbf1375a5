"""Fixtures that start the service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.local_service import Service

WORKSPACE = Path(__file__).with_name("workspace.yaml")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that all tests of the run share."""
    running = Service(tmp_path_factory.mktemp("service") / "data", WORKSPACE).start()
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def own_module_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a running service that the tests of one module may change."""
    own = Service(tmp_path_factory.mktemp("module") / "data", WORKSPACE).start()
    yield own
    own.stop()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """Return a service, not started, that the test may stop and kill."""
    own = Service(tmp_path / "data", WORKSPACE)
    yield own
    own.stop()
