"""Fixture that starts a service for the pages."""

from pathlib import Path

import pytest

from tests.pages.browser import BROWSER
from tests.service.local_service import Service, SharedService

WORKSPACE = Path(__file__).parents[1] / "service" / "workspace.yaml"
HERE = Path(__file__).parent
SHARED = SharedService(HERE, WORKSPACE)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Close the shared browser and stop the shared service after the last test of this folder."""
    next_test = nextitem.path if nextitem else None
    BROWSER.close_before(next_test, HERE)
    SHARED.stop_before(next_test)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """Return a service that all tests of this folder share."""
    return SHARED.get(tmp_path_factory.mktemp)
