"""Running service with the sample workspace for the tests of the README and of the recipes."""

from collections.abc import Iterator

import pytest

from tests.service.local_service import ROOT, Service, wait_until


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a running service with the sample workspace as soon as its table has the first readings."""
    # The tour must work with a space in the path of the data folder, and on any port.
    running = Service(tmp_path_factory.mktemp("readme") / "a plant", ROOT / "samples" / "workspace.yaml").start()
    viewer = running.create_client("viewer@plant-a.example")
    address = "/oi-api/warm-queries/latest-readings?p.connection=chiller-sim&limit=2"
    wait_until(lambda: viewer.get(address).json()["rowCount"], lambda rows: rows == 2)
    yield running
    running.stop()
