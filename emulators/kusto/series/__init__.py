"""Mathematics of the KQL series functions with NumPy; each function computes the outputs for one series."""

from collections.abc import Mapping
from typing import Any

type SqlOutputs = Mapping[str, Any] | None
"""Outputs of a function that SQL calls, by name; None for null."""
