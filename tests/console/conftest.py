"""Fixtures: a service with the sample workspace, and a browser that shows the console of this service."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.visits import Console, open_console
from tests.pages.axe import AXE
from tests.pages.browser import BROWSER, CHROMIUM, NO_CHROMIUM
from tests.service.local_service import ROOT, Service, SharedService

WORKSPACE = ROOT / "samples" / "workspace.yaml"
HERE = Path(__file__).parent
WITHOUT_BROWSER = frozenset({"test_build.py"})
SHARED = SharedService(HERE, WORKSPACE)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Close the shared browser and stop the shared service after the last test of this folder."""
    next_test = nextitem.path if nextitem else None
    BROWSER.close_before(next_test, HERE)
    SHARED.stop_before(next_test)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the browser tests on machines without a browser."""
    missing = _explain_skip()
    for item in items:
        if missing and HERE in item.path.parents and item.path.name not in WITHOUT_BROWSER:
            item.add_marker(pytest.mark.skip(reason=missing))


def _explain_skip() -> str:
    if CHROMIUM is None:
        return NO_CHROMIUM
    if not (ROOT / "static" / "console" / "index.html").is_file() or not AXE.is_file():
        return "the console is not built; run `make assets` (needs npm)"
    return ""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """Return the service with the sample workspace, which all tests of this folder share."""
    return SHARED.get(tmp_path_factory.mktemp)


@pytest.fixture
def console(service: Service) -> Iterator[Console]:
    """Yield a browser without a session; after the test, fail if the browser has reported an unexpected error."""
    with open_console(service) as made:
        yield made
        made.check_no_errors()
