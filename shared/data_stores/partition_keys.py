"""Partition keys of documents and requests, by the same rules for every store."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from shared.data_stores.document_rules import LARGEST_WHOLE
from shared.data_stores.models import MISSING, Missing, PartitionValue
from shared.errors import invalid

MAX_VALUE_BYTES: Final = 2048
"""Maximum size of a text; the limit of Cosmos DB."""

ID_PATH: Final = "/id"


def read_partition_key(document: Mapping[str, Any], path: str) -> PartitionValue:
    """Return the partition key value of a document.

    Args:
        document: the document.
        path: ``/a``, or ``/a/b`` for a nested member.

    Raises:
        WorkspaceError: INVALID naming the member if it is an object, an array, or a text over 2,048 bytes.
    """
    value: Any = document
    for name in path.split("/")[1:]:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return validate_partition_key(value, path[1:].replace("/", "."))


def validate_partition_key(value: Any, field: str) -> PartitionValue:
    """Return a JSON value as a partition key value.

    Raises:
        WorkspaceError: INVALID naming the field.
    """
    if isinstance(value, dict | list):
        raise invalid(field, "the partition key must be a text, a number, true, false or null")
    if isinstance(value, str) and len(value.encode()) > MAX_VALUE_BYTES:
        raise invalid(field, f"the partition key must have at most {MAX_VALUE_BYTES} bytes")
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        raise invalid(field, f"the partition key must not be a whole number beyond {LARGEST_WHOLE}")
    result: PartitionValue = value
    return result


def format_partition_key(value: PartitionValue) -> str:
    """Return a text that is equal only for equal values; empty for the missing value."""
    if isinstance(value, Missing):
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Negative zero and zero must have the same text.
        return repr(float(value) + 0.0)
    return orjson.dumps(value).decode()
