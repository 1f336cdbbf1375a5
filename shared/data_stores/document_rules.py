"""What a document may be: the rules of Cosmos DB, kept by every store alike."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shared.data_stores.models import DocumentKey, PartitionValue
from shared.errors import FieldError, Kind, WorkspaceError, invalid, invalid_fields

MAX_ID_BYTES: Final = 1023
MAX_DOCUMENT_BYTES: Final = 2_000_000
"""Of the document as UTF-8 JSON without white space; leaves the account room for its own members."""

WRITE_MARK: Final = "_oiWrite"
"""Member in which an account keeps which write made the item as it is."""

SYSTEM_MEMBERS: Final = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts", WRITE_MARK})
LARGEST_WHOLE: Final = 2**53 - 1
_FORBIDDEN: Final = frozenset("/\\#?\x7f") | frozenset(map(chr, range(32)))
_RELATIVE: Final = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """A document on its way into a store.

    Attributes:
        key: names it.
        text: its JSON.
    """

    key: DocumentKey
    text: bytes


def check_id(document_id: Any, field: str) -> str:
    """Return a document's id.

    Raises:
        WorkspaceError: INVALID naming the field.
    """
    if rule := _broken_id(document_id):
        raise invalid(field, rule)
    checked: str = document_id
    return checked


def _broken_id(document_id: Any) -> str | None:
    if not isinstance(document_id, str) or not document_id:
        return "a document's id is a text that is not empty"
    if _FORBIDDEN & set(document_id):
        return "a document's id holds no control character and none of / \\ # ?"
    if document_id in _RELATIVE or document_id.endswith(" "):
        return "a document's id is not . or .. and does not end with a space"
    if len(document_id.encode()) > MAX_ID_BYTES:
        return f"a document's id has at most {MAX_ID_BYTES} bytes"
    return None


def prepare_document(body: dict[str, Any]) -> dict[str, Any]:
    """Return a new document with a sound id, made where it has none, and without members of the account's own.

    Raises:
        WorkspaceError: INVALID naming ``id`` and each member that holds a number that accounts do not keep.
    """
    document = {"id": body["id"] if "id" in body else str(uuid.uuid4())}
    document |= {name: value for name, value in body.items() if name not in SYSTEM_MEMBERS}
    rule = _broken_id(document["id"])
    errors = [FieldError("id", rule)] if rule else []
    # An id that is a number is refused as such already.
    errors += _large_numbers({name: value for name, value in document.items() if name != "id"})
    if errors:
        raise invalid_fields(errors)
    return document


def build_draft(document: dict[str, Any], partition: PartitionValue) -> DocumentDraft:
    """Return a checked document as it is to be stored.

    Raises:
        WorkspaceError: TOO_LARGE ``DOCUMENT_TOO_LARGE``.
    """
    text = orjson.dumps(document)
    if len(text) > MAX_DOCUMENT_BYTES:
        raise document_too_large()
    return DocumentDraft(DocumentKey(document["id"], partition), text)


def document_too_large() -> WorkspaceError:
    """Return the error for a document over the limit."""
    detail = f"The document is larger than {MAX_DOCUMENT_BYTES} bytes."
    return WorkspaceError(Kind.TOO_LARGE, "DOCUMENT_TOO_LARGE", detail, maxBytes=MAX_DOCUMENT_BYTES)


def _large_numbers(document: dict[str, Any]) -> Sequence[FieldError]:
    """Return the members that hold whole numbers that a double does not: Cosmos DB would change them without a word."""
    rule = f"holds a whole number beyond {LARGEST_WHOLE}; send it as text"
    return [FieldError(name, rule) for name, value in document.items() if _holds_large(value)]


def _holds_large(value: Any) -> bool:
    level: list[Any] = [value]
    while level:
        if any(type(item) is int and abs(item) > LARGEST_WHOLE for item in level):
            return True
        level = [inner for item in level for inner in _inner(item)]
    return False


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
