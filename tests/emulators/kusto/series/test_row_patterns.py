"""Tests of the search for patterns of rows."""

import numpy as np
import pytest

from emulators.kusto.python_functions import FunctionFailure
from emulators.kusto.series import row_patterns


def test_a_pattern_search_with_too_many_candidates_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for row patterns with too many candidates or rows is rejected."""
    codes, weights = np.tile(np.arange(1.0, 11), 4), np.ones(10)
    monkeypatch.setattr(row_patterns, "MAX_PATTERNS", 10)
    with pytest.raises(FunctionFailure, match="candidates"):
        row_patterns.compute_basket_patterns(codes, weights, 4, 0.05, 5)
    monkeypatch.setattr(row_patterns, "MAX_EFFORT", 15)
    with pytest.raises(FunctionFailure, match="rows"):
        row_patterns.compute_basket_patterns(codes, weights, 4, 0.2, 5)
