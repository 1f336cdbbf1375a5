"""Fixture that starts a service for the pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages.browser import BROWSER
from tests.service.local_service import Service, SharedService

WORKSPACE = Path(__file__).parents[1] / "service" / "workspace.yaml"
SHARED = SharedService(Path(__file__).parent, WORKSPACE)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stop the shared service after the last test of this folder."""
    SHARED.stop_before(nextitem.path if nextitem else None)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """Return a service that all tests of this folder share."""
    return SHARED.get(tmp_path_factory.mktemp)


@pytest.fixture(scope="module", autouse=True)
def close_browser() -> Iterator[None]:
    """Close the browser that the tests of a module share."""
    yield
    BROWSER.close()
