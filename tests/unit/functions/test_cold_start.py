"""What starting the app loads."""

import json
import subprocess
import sys
from typing import Final

from functions import GROUPS
from tests.service.running import ROOT

HEAVY: Final = {
    "ariadne",
    "azure.kusto",
    "azure.monitor",
    "azure.storage",
    "duckdb",
    "graphql",
    "mcp",
    "mcp_types",
    "playwright",
    "pyarrow",
}
"""Packages that a few routes need; each would be waited for by every first request."""


def test_starting_loads_nothing_that_only_some_routes_need() -> None:
    """Importing the app imports no endpoint group, and no library of its interfaces, its stores and its engines."""
    code = "import json, sys, function_app; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert {"functions.ingest", "shared.http.pipeline"} <= loaded
    assert loaded & HEAVY == set()
    assert [group.name for group in GROUPS if group._module in loaded] == []
