"""Benchmark: time to import the app, compared with the time to import only its third-party packages."""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure

RUNS = 9
ROOT = Path(__file__).parents[1]
FLOOR = "azure.functions, azure.durable_functions, pydantic"


def measure_import_time() -> Iterator[Figure]:
    """Import ``function_app`` and its third-party packages alternately, each time in a new process."""
    floor, app = [], []
    # The packages have byte code since their installation; the first import compiles that of the app.
    _measure_import_seconds("function_app")
    for _ in range(RUNS):
        floor.append(_measure_import_seconds(FLOOR))
        app.append(_measure_import_seconds("function_app"))
    ratio = statistics.median(app) / statistics.median(floor)
    detail = {"appSeconds": round(statistics.median(app), 4), "floorSeconds": round(statistics.median(floor), 4)}
    yield Figure("import_time_ratio", ratio, "ratio", at_most=1.3, detail={**detail, "floor": FLOOR, "runs": RUNS})


def _measure_import_seconds(module_names: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module_names}; print(time.perf_counter() - t)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
