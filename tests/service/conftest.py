"""Fixtures that start the service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.local_service import Service, SharedService

WORKSPACE = Path(__file__).with_name("workspace.yaml")
SHARED = SharedService(Path(__file__).parent, WORKSPACE)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stop the shared service after the last test of this folder."""
    SHARED.stop_before(nextitem.path if nextitem else None)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """Return a service that all tests of this folder share."""
    return SHARED.get(tmp_path_factory.mktemp)


@pytest.fixture(scope="module")
def own_module_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a running service of one test module, whose tests may change it."""
    own = Service(tmp_path_factory.mktemp("module") / "data", WORKSPACE).start()
    yield own
    own.stop()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """Return a service that is not started yet, and that only one test starts, stops and kills."""
    own = Service(tmp_path / "data", WORKSPACE)
    yield own
    own.stop()
