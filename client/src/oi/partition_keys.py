"""Partition keys of documents as query parameters."""

from enum import Enum
from typing import Final, TypeAlias

from oi.json_text import encode_json


class NullKey(Enum):
    """Type of ``NULL_KEY``, which selects documents whose partition key is null; None means that no key is given."""

    NULL = "null"


NULL_KEY: Final = NullKey.NULL
PartitionKey: TypeAlias = str | float | bool | NullKey
"""Value of a partition key: a text, an integer or another number, a boolean, or ``NULL_KEY``."""


def build_partition_query_parameters(partition_key: PartitionKey | None) -> dict[str, str]:
    """Build the query parameters that select a partition; the result is empty if the key is None.

    A text is sent as it is. All other keys are sent as JSON, because 1 and "1" are different keys.

    Raises:
        JsonTextError: the key is NaN or infinite.
    """
    if partition_key is None:
        return {}
    if isinstance(partition_key, str):
        return {"partitionKey": partition_key}
    value = None if isinstance(partition_key, NullKey) else partition_key
    return {"partitionKey": encode_json(value).decode(), "partitionKeyType": "json"}
