"""Access to the outputs of a function that SQL calls, for tests."""

from collections.abc import Mapping
from typing import Any

from emulators.kusto.series import SqlOutputs


def require_outputs(outputs: SqlOutputs) -> Mapping[str, Any]:
    """Return the outputs of a function, which must not be None."""
    assert outputs is not None
    return outputs
