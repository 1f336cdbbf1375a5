"""Tests of reading the partition key of a document."""

from itertools import combinations
from typing import Any

import pytest

from shared.data_stores.models import MISSING
from shared.data_stores.partition_keys import MAX_VALUE_BYTES, format_partition_key, read_partition_key
from shared.errors import WorkspaceError


@pytest.mark.parametrize("value", ["l1", "", 1, 1.5, True, False, None])
def test_a_partition_key_is_read_from_a_nested_property(value: Any) -> None:
    """The partition key is the value at its path: a text, number, boolean or null."""
    assert read_partition_key({"site": {"line": value}}, "/site/line") == value


@pytest.mark.parametrize("document", [{}, {"site": {}}, {"site": "a"}, {"line": "a"}])
def test_a_document_without_the_property_has_the_key_of_missing_values(document: dict[str, Any]) -> None:
    """A document without a value at the path has the partition key of missing values."""
    assert read_partition_key(document, "/site/line") is MISSING


@pytest.mark.parametrize("value", [{}, [], "ü" * (MAX_VALUE_BYTES // 2 + 1), 2**60])
def test_an_invalid_partition_key_value_is_rejected(value: Any) -> None:
    """An object, an array, a long text or a number that loses digits is rejected with the property's name."""
    with pytest.raises(WorkspaceError) as caught:
        read_partition_key({"site": {"line": value}}, "/site/line")
    assert "'field': 'site.line'" in str(caught.value.members["errors"])


def test_only_equal_partition_keys_have_the_same_text() -> None:
    """Partition keys have the same text only if they are equal: 1 equals 1.0, and -0 equals 0."""
    for one, other in combinations([MISSING, None, "", "null", "1", 1, True, "true", 0.5], 2):
        assert format_partition_key(one) != format_partition_key(other)
    assert format_partition_key(-0.0) == format_partition_key(0)
    assert format_partition_key(1) == format_partition_key(1.0)
