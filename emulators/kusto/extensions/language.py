"""Functions and aggregates of KQL, as Microsoft's language service defines them, from the file ``language.json``."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

LANGUAGE = Path(__file__).parents[1] / "language.json"

type FunctionKind = Literal["functions", "aggregates"]
type FunctionDescriptions = Mapping[str, Mapping[str, Any]]
"""Description of each function by name: ``signatures``, and ``naming`` (the default name of its result column)."""


@functools.cache
def read_kql_function_descriptions(function_kind: FunctionKind) -> FunctionDescriptions:
    """Return the descriptions of all KQL functions of one kind, ``functions`` or ``aggregates``, by name."""
    return {symbol["name"]: symbol for symbol in json.loads(LANGUAGE.read_text(encoding="utf-8"))[function_kind]}
