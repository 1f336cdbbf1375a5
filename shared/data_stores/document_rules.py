"""Validation of documents by the rules of Cosmos DB, for every document store."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from shared.data_stores.models import DocumentKey, PartitionValue
from shared.errors import (
    MAX_LISTED,
    FieldError,
    Kind,
    WorkspaceError,
    build_invalid_field_error,
    build_invalid_fields_error,
)
from shared.runtime import Runtime

MAX_ID_BYTES: Final = 1023
MAX_DOCUMENT_BYTES: Final = 2_000_000
"""Maximum size of a document as UTF-8 JSON without white space; Cosmos DB needs the rest for its own properties."""

WRITE_MARK: Final = "_oiWrite"
"""Property in which this service stores the id of the write that produced the document."""

SYSTEM_MEMBERS: Final = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts", WRITE_MARK})
LARGEST_WHOLE: Final = 2**53 - 1
_FORBIDDEN: Final = frozenset("/\\#?\x7f") | frozenset(map(chr, range(32)))
_RELATIVE: Final = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """Validated document that is ready to be stored.

    Attributes:
        key: id and partition key of the document.
        text: JSON text of the document.
    """

    key: DocumentKey
    text: bytes


def require_valid_document_id(document_id: Any, field_name: str) -> str:
    """Check that a value is a valid document id, and return the id.

    Raises:
        WorkspaceError: INVALID naming the field.
    """
    if rule := _find_document_id_error(document_id):
        raise build_invalid_field_error(field_name, rule)
    valid_id: str = document_id
    return valid_id


def _find_document_id_error(document_id: Any) -> str | None:
    if not isinstance(document_id, str) or not document_id:
        return "must be a non-empty text"
    if _FORBIDDEN & set(document_id):
        return "must not contain control characters or / \\ # ?"
    if document_id in _RELATIVE or document_id.endswith(" "):
        return "must not be . or .. and must not end with a space"
    if len(document_id.encode()) > MAX_ID_BYTES:
        return f"must have at most {MAX_ID_BYTES} bytes"
    return None


def build_document_to_store(body: dict[str, Any], runtime: Runtime) -> dict[str, Any]:
    """Build the document to store from a request body: add an id if it is missing, and remove system properties.

    Raises:
        WorkspaceError: INVALID naming ``id`` and each property with a number that Cosmos DB cannot store exactly.
    """
    document = {"id": body["id"] if "id" in body else str(runtime.new_uuid())}
    document |= {name: value for name, value in body.items() if name not in SYSTEM_MEMBERS}
    rule = _find_document_id_error(document["id"])
    # An error for a numeric id is already reported.
    others = {name: value for name, value in document.items() if name != "id"}
    errors = [
        *([FieldError("id", rule)] if rule else ()),
        *islice(_iterate_too_large_integer_errors(others), MAX_LISTED + 1),
    ]
    if errors:
        raise build_invalid_fields_error(errors)
    return document


def serialise_document_draft(document: dict[str, Any], partition: PartitionValue) -> DocumentDraft:
    """Serialise a validated document, check its size, and combine it with its partition key.

    Raises:
        WorkspaceError: TOO_LARGE ``DOCUMENT_TOO_LARGE``.
    """
    text = orjson.dumps(document)
    if len(text) > MAX_DOCUMENT_BYTES:
        raise build_document_too_large_error()
    return DocumentDraft(DocumentKey(document["id"], partition), text)


def build_document_too_large_error() -> WorkspaceError:
    """Build the error for a document that exceeds the size limit."""
    detail = f"The document is larger than {MAX_DOCUMENT_BYTES} bytes."
    return WorkspaceError(Kind.TOO_LARGE, "DOCUMENT_TOO_LARGE", detail, maxBytes=MAX_DOCUMENT_BYTES)


def _iterate_too_large_integer_errors(document: dict[str, Any]) -> Iterator[FieldError]:
    """Yield an error for each property with an integer that a double cannot store exactly.

    Cosmos DB would change the integer silently.
    """
    rule = f"contains a whole number outside -{LARGEST_WHOLE} to {LARGEST_WHOLE}; send the number as text"
    return (FieldError(name, rule) for name, value in document.items() if _has_too_large_integer(value))


def _has_too_large_integer(json_value: Any) -> bool:
    level: list[Any] = [json_value]
    while level:
        if any(type(item) is int and abs(item) > LARGEST_WHOLE for item in level):
            return True
        level = [inner for item in level for inner in _iterate_json_children(item)]
    return False


def _iterate_json_children(json_value: Any) -> Iterable[Any]:
    if isinstance(json_value, dict):
        return json_value.values()
    return json_value if isinstance(json_value, list) else ()
