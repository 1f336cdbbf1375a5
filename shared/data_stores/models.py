"""Where documents are, and what a store gives back of them."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Missing(Enum):
    """The partition key value of a document without a member at the partition path; null is a value of its own."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

type PartitionValue = str | int | float | bool | Missing | None
"""A partition key value; numbers are doubles, so that 1 and 1.0 are one value."""


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """A database, by the lookups of its store and its own."""

    store: str
    database: str


@dataclass(frozen=True, slots=True)
class AccountContainer:
    """A container as the account has it.

    Attributes:
        name: unique in its database, case-sensitive.
        partition_key_path: for instance ``/line``; ``/a/b`` is a member of a member.
    """

    name: str
    partition_key_path: str


@dataclass(frozen=True, slots=True)
class Table:
    """A container as the place of documents."""

    place: DatabasePlace
    container: AccountContainer


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """What names a document in its table."""

    id: str
    partition: PartitionValue


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as stored.

    Attributes:
        text: its JSON, without the store's own members.
        etag: strong, with its quotes; another one after each write.
    """

    text: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Some documents of a list.

    Attributes:
        texts: the documents' JSON.
        position: where the next page begins, in the store's own words; None on the last page.
    """

    texts: tuple[bytes, ...]
    position: str | None
