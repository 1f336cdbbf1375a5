"""Partition key values of documents and requests: reading, validation, and a comparable text form."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from shared.data_stores.document_rules import LARGEST_WHOLE
from shared.data_stores.models import MISSING, Missing, PartitionValue
from shared.errors import build_invalid_field_error

MAX_VALUE_BYTES: Final = 2048
"""Maximum size of a partition key text in bytes; a limit of Cosmos DB."""

ID_PATH: Final = "/id"


def read_partition_key(document: Mapping[str, Any], partition_key_path: str) -> PartitionValue:
    """Return the partition key value of a document; ``MISSING`` if the document lacks the property.

    Args:
        document: document as JSON object.
        partition_key_path: partition key path of the table: ``/a``, or ``/a/b`` for a nested property.

    Raises:
        WorkspaceError: INVALID naming the property if it is an object, an array, or a text over 2,048 bytes.
    """
    value: Any = document
    for name in partition_key_path.split("/")[1:]:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return require_valid_partition_key(value, partition_key_path[1:].replace("/", "."))


def require_valid_partition_key(json_value: Any, field_name: str) -> PartitionValue:
    """Check that a JSON value can be a partition key, and return the value.

    Raises:
        WorkspaceError: INVALID naming the field.
    """
    if isinstance(json_value, dict | list):
        raise build_invalid_field_error(field_name, "the partition key must be a text, a number, true, false or null")
    if isinstance(json_value, str) and len(json_value.encode()) > MAX_VALUE_BYTES:
        raise build_invalid_field_error(field_name, f"the partition key must have at most {MAX_VALUE_BYTES} bytes")
    if isinstance(json_value, int) and abs(json_value) > LARGEST_WHOLE:
        raise build_invalid_field_error(
            field_name, f"a whole number must be between -{LARGEST_WHOLE} and {LARGEST_WHOLE}; send larger ones as text"
        )
    result: PartitionValue = json_value
    return result


def format_partition_key(value: PartitionValue) -> str:
    """Format a partition key value as text, so that two texts are equal only for equal values; ``MISSING`` gives ""."""
    if isinstance(value, Missing):
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Negative zero and zero must have the same text.
        return repr(float(value) + 0.0)
    return orjson.dumps(value).decode()
