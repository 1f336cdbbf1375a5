"""Tests that the start of the app imports few modules."""

import json
import os
import subprocess
import sys
from typing import Final

from functions import GROUPS
from tests.service.local_service import ROOT

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
"""Packages that only some routes need; importing them at start would delay every first request."""


def test_start_imports_no_endpoint_group_and_no_heavy_package() -> None:
    """Importing the app imports no endpoint group, and no package that only some routes need."""
    code = "import json, sys, function_app; print(json.dumps(sorted(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(process.stdout))
    assert {"functions.triggers", "shared.http.pipeline"} <= loaded
    assert loaded & HEAVY == set()
    assert [group.name for group in GROUPS if group._module in loaded] == []


def test_garbage_collection_is_enabled_after_the_start() -> None:
    """Garbage collection, which is disabled during the start of the app, is enabled after the start."""
    code = "import gc, function_app; print(gc.isenabled())"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "True\n"


def test_the_start_searches_no_packages_for_plugins() -> None:
    """Importing the app does not search all installed packages for plugins, which would take a tenth of the start."""
    code = "import importlib.metadata; importlib.metadata.entry_points = None; import function_app"
    environment = {name: value for name, value in os.environ.items() if name != "PYDANTIC_DISABLE_PLUGINS"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
