"""What a document may be: the rules of Cosmos DB, kept by every store alike."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shared.data_stores.models import DocumentKey, PartitionValue
from shared.errors import Kind, WorkspaceError, invalid

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
class Draft:
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
    if not isinstance(document_id, str) or not document_id:
        raise invalid(field, "a document's id is a text that is not empty")
    if _FORBIDDEN & set(document_id):
        raise invalid(field, "a document's id holds no control character and none of / \\ # ?")
    if document_id in _RELATIVE or document_id.endswith(" "):
        raise invalid(field, "a document's id is not . or .. and does not end with a space")
    if len(document_id.encode()) > MAX_ID_BYTES:
        raise invalid(field, f"a document's id has at most {MAX_ID_BYTES} bytes")
    return document_id


def with_id(body: dict[str, Any]) -> dict[str, Any]:
    """Return a new document with a sound id, made where it has none, and without members of the account's own.

    Raises:
        WorkspaceError: INVALID naming ``id`` or the member that holds a number that accounts do not keep.
    """
    document = {"id": body["id"] if "id" in body else str(uuid.uuid4())}
    document |= {name: value for name, value in body.items() if name not in SYSTEM_MEMBERS}
    check_id(document["id"], "id")
    check_numbers(document)
    return document


def draft(document: dict[str, Any], partition: PartitionValue) -> Draft:
    """Return a checked document as it is to be stored.

    Raises:
        WorkspaceError: TOO_LARGE ``DOCUMENT_TOO_LARGE``.
    """
    text = orjson.dumps(document)
    if len(text) > MAX_DOCUMENT_BYTES:
        raise too_large()
    return Draft(DocumentKey(document["id"], partition), text)


def too_large() -> WorkspaceError:
    """Return the error for a document over the limit."""
    detail = f"The document is larger than {MAX_DOCUMENT_BYTES} bytes."
    return WorkspaceError(Kind.TOO_LARGE, "DOCUMENT_TOO_LARGE", detail, maxBytes=MAX_DOCUMENT_BYTES)


def check_numbers(document: dict[str, Any]) -> None:
    """Refuse whole numbers that a double does not hold: Cosmos DB would change them without a word.

    Raises:
        WorkspaceError: INVALID naming the member of the document that holds one.
    """
    for name, value in document.items():
        level: list[Any] = [value]
        while level:
            if any(type(item) is int and abs(item) > LARGEST_WHOLE for item in level):
                raise invalid(name, f"holds a whole number beyond {LARGEST_WHOLE}; send it as text")
            level = [inner for item in level for inner in _inner(item)]


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
