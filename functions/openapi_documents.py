"""Serialised OpenAPI documents, built in small parts and cached for one version of the catalog.

This module is separate from ``openapi``, because it needs no request.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shared.http.messages import json_bytes
from shared.warm_queries.ports import Column

MAX_DOCUMENTS: Final = 8
"""Maximum number of cached documents; callers with the same operations share one."""

type QueryColumns = Sequence[Sequence[Column] | None]


@dataclass(frozen=True, slots=True)
class SerializedOpenApi:
    """OpenAPI document as JSON text, with its ETag."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class OpenApiKey:
    """Cache key of an OpenAPI document. The catalog's version and the columns of queries are not part of the key.

    Attributes:
        operations: names of the operations that the caller may use.
        server: URL of the service.
    """

    operations: frozenset[str]
    server: str


class OpenApiCache:
    """Cache of the OpenAPI documents for the newest version of the catalog; the least recently used are dropped."""

    def __init__(self) -> None:
        self._version = -1
        self._documents: OrderedDict[OpenApiKey, tuple[QueryColumns, SerializedOpenApi]] = OrderedDict()

    def find_document(self, version: int, key: OpenApiKey, columns: QueryColumns) -> SerializedOpenApi | None:
        """Return the cached document for a version of the catalog and its queries' columns; None if not cached."""
        if version != self._version or key not in self._documents:
            return None
        known, document = self._documents[key]
        # Unchanged columns are the same objects, so this comparison does not read them.
        if known != columns:
            return None
        self._documents.move_to_end(key)
        return document

    def store_document(self, version: int, key: OpenApiKey, columns: QueryColumns, document: SerializedOpenApi) -> None:
        """Cache an OpenAPI document; a document of a newer catalog version removes those of older versions."""
        if version < self._version:
            return
        if version > self._version:
            self._documents.clear()
            self._version = version
        self._documents[key] = columns, document
        self._documents.move_to_end(key)
        while len(self._documents) > MAX_DOCUMENTS:
            self._documents.popitem(last=False)


def serialize_path_item(item: Mapping[str, Any]) -> orjson.Fragment:
    """Serialise a Path Item (the operations of one URL path) of an OpenAPI document.

    The serializer does not release the interpreter. One call for a document of thousands of paths would block the event
    loop, although the document is built in another thread.
    """
    return orjson.Fragment(json_bytes(item))


def serialize_document(document: Mapping[str, Any]) -> SerializedOpenApi:
    """Serialise an OpenAPI document whose Path Items are already serialised."""
    body = json_bytes(document)
    return SerializedOpenApi(body, f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"')
