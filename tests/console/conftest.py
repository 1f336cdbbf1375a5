"""A running service with the sample plant, and browsers that show its console."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.visits import AXE, Console, visiting
from tests.pages.browser import CHROMIUM, NO_CHROMIUM
from tests.service.local_service import ROOT, Service

WORKSPACE = ROOT / "samples" / "workspace.yaml"
HERE = Path(__file__).parent
WITHOUT_BROWSER = frozenset({"test_build.py"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a browser where there is none."""
    missing = _missing()
    for item in items:
        if missing and HERE in item.path.parents and item.path.name not in WITHOUT_BROWSER:
            item.add_marker(pytest.mark.skip(reason=missing))


def _missing() -> str:
    if CHROMIUM is None:
        return NO_CHROMIUM
    if not (ROOT / "static" / "console" / "index.html").is_file() or not AXE.is_file():
        return "the console is not built: make assets needs npm"
    return ""


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return the sample plant, running as long as the tests do."""
    running = Service(tmp_path_factory.mktemp("console") / "data", WORKSPACE).start()
    yield running
    assert running.stop() == 0


@pytest.fixture
def console(service: Service) -> Iterator[Console]:
    """Return a browser for the console, not signed in; what went wrong in it fails the test."""
    with visiting(service) as made:
        yield made
        made.stayed_clean()
