"""Tests of functions that compute hash values."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

EXAMPLES: list[tuple[str, Any]] = [
    ('hash("World")', 1846988464401551951),
    ('hash("World", 100)', 51),
    ('hash(datetime("2015-01-01"))', 1380966698541616202),
    ('hash_xxhash64("Hello")', 753694413698530628),
    ('hash(strrep("a", 100)) == hash_xxhash64(strrep("a", 100))', 1),
    ('hash_many("a", 1) == hash_combine(hash("a"), hash(1))', 1),
    ("hash(long(null))", None),
    ("hash_combine(1.5, datetime(2024-01-02)) == hash_combine(1.5, datetime(2024-01-02))", 1),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_a_function_has_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A hash has the documented value; the hash of null is null."""
    assert endpoint.rows(f"print {expression}") == [[value]]
