"""Models of Cosmos DB databases, tables (exposed containers), document keys, and results of document stores."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Missing(Enum):
    """Marker for a document or a request without partition key; a partition key with the value null is different."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

type ETag = str
"""Entity tag: identifies the stored version of a document."""

type PartitionValue = str | int | float | bool | Missing | None
"""Partition key value; numbers are doubles, so that 1 and 1.0 are equal."""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Identification of a database: its lookup (id in URLs), and the lookup of its data store."""

    store: str
    database: str


@dataclass(frozen=True, slots=True)
class AccountContainer:
    """Container that exists in the Cosmos DB account.

    Attributes:
        name: name of the container, unique in its database, case-sensitive.
        partition_key_path: path of the partition key property, such as ``/line``, or ``/a/b`` if nested.
    """

    name: str
    partition_key_path: str


@dataclass(frozen=True, slots=True)
class Table:
    """Container whose documents the API exposes, with its database."""

    place: DatabaseAddress
    container: AccountContainer


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """Key of a document in its table: id and partition key value."""

    id: str
    partition: PartitionValue


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """JSON document as it is stored, with its entity tag.

    Attributes:
        text: JSON text of the document, without the store's own properties.
        etag: strong entity tag with quotes; it changes with each write.
    """

    text: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Page of a list of documents, as a document store returns it.

    Attributes:
        texts: documents as JSON texts.
        next_position: start of the next page, in a form private to the store; None on the last page.
    """

    texts: tuple[bytes, ...]
    next_position: str | None
