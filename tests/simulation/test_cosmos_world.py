"""Tests of worlds whose services use Cosmos DB."""

import re
from pathlib import Path

from tests.simulation.cosmos_world import STORES, replace_modules, uses_cosmos

WIRING = Path(__file__).parents[2] / "shared" / "wiring"
NOT_SIMULATED = {"CosmosAccount", "CosmosContainerStore", "CosmosDocumentStore"}
"""Clients of accounts with users' documents, and the account itself."""


def test_at_least_a_fifth_of_the_worlds_uses_cosmos() -> None:
    """At least 20 % of the seeds select a world with Cosmos DB."""
    assert sum(map(uses_cosmos, range(10_000))) >= 2_000


def test_every_wired_cosmos_store_is_simulated() -> None:
    """Simulated worlds use each Cosmos DB store that ``shared.wiring`` creates."""
    wired = {
        name
        for path in WIRING.glob("*.py")
        for name in re.findall(r"import (Cosmos\w+)", path.read_text(encoding="utf-8"))
    }
    code = Path(__file__).with_name("cosmos_world.py").read_text(encoding="utf-8")
    used = set(re.findall(r"Cosmos\w+", code.partition("STORES: Final")[2].partition('"""Stores of')[0]))
    assert wired - NOT_SIMULATED == used - {"CosmosAccount"}
    assert len(STORES) > 10


def test_crash_points_of_cosmos_worlds_are_in_the_cosmos_adapters() -> None:
    """In a world with Cosmos DB, the crash points are in the Cosmos DB adapters instead of the embedded adapters."""
    assert replace_modules(("shared/a.py", "shared/backends/embedded/grants.py")) == (
        "shared/a.py",
        "shared/backends/azure/cosmos_credentials.py",
    )
