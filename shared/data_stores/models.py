"""Places of documents, and the results of document stores."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Missing(Enum):
    """Partition key value of a document without the partition member; null is a different value."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

type PartitionValue = str | int | float | bool | Missing | None
"""Partition key value; numbers are doubles, so that 1 and 1.0 are equal."""


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """Database, identified by the lookups of its store and itself."""

    store: str
    database: str


@dataclass(frozen=True, slots=True)
class AccountContainer:
    """Container of the account.

    Attributes:
        name: unique in its database, case-sensitive.
        partition_key_path: for instance ``/line``; ``/a/b`` is a nested member.
    """

    name: str
    partition_key_path: str


@dataclass(frozen=True, slots=True)
class Table:
    """Container that holds documents, with its database."""

    place: DatabasePlace
    container: AccountContainer


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """Key of a document in its table."""

    id: str
    partition: PartitionValue


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """Stored document.

    Attributes:
        text: its JSON, without the store's own members.
        etag: strong entity tag with quotes; it changes with each write.
    """

    text: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Page of a list.

    Attributes:
        texts: JSON of the documents.
        position: start of the next page, in a form private to the store; None on the last page.
    """

    texts: tuple[bytes, ...]
    position: str | None
