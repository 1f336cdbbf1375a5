"""Tests of partition keys as query parameters."""

from typing import Any

import pytest
from oi import NULL_KEY
from oi.json_text import JsonTextError
from oi.partition_keys import build_partition_query_parameters


@pytest.mark.parametrize(
    ("key", "parameters"),
    [
        (None, {}),
        ("42", {"partitionKey": "42"}),
        ("", {"partitionKey": ""}),
        (42, {"partitionKey": "42", "partitionKeyType": "json"}),
        (-0.5, {"partitionKey": "-0.5", "partitionKeyType": "json"}),
        (True, {"partitionKey": "true", "partitionKeyType": "json"}),
        (NULL_KEY, {"partitionKey": "null", "partitionKeyType": "json"}),
    ],
)
def test_a_partition_key_keeps_its_type(key: Any, parameters: dict[str, str]) -> None:
    """A text is sent as it is, another key as JSON, and None as no key."""
    assert build_partition_query_parameters(key) == parameters


def test_a_partition_key_that_json_cannot_express_is_not_sent() -> None:
    """NaN is not a partition key."""
    with pytest.raises(JsonTextError):
        build_partition_query_parameters(float("nan"))
