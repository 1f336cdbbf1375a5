"""HTTP operation that returns the OpenAPI document, built in small parts and cached for one version of the catalog."""

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from functions import GROUPS
from functions.conditions import KNOWN_VERSION, parse_if_none_match
from functions.lazy_groups import load_operations
from shared.auth.principals import Principal
from shared.catalog.snapshot import Catalog
from shared.http.messages import JSON, Reply
from shared.http.operation_docs import ETAG, NOT_MODIFIED, DocumentedReply, OperationDocs
from shared.http.operations import Call, Group, Operation
from shared.http.unknown_names import UnknownNames
from shared.interpreter import load_modules
from shared.text_formats.serialisation import serialise_json
from shared.warm_queries.ports import Column
from shared.wiring import services

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
    """Cache key of an OpenAPI document.

    The catalog's version and the columns of the queries are not in the key; :class:`OpenApiCache` compares them.

    Attributes:
        operations: names of the operations that the caller may use.
        server: URL of the service.
        connections: lookups of the connections to which the caller's API key is bound, so that it can send only their
            telemetry; None if the key is not bound.
    """

    operations: frozenset[str]
    server: str
    connections: tuple[str, ...] | None = None


class OpenApiCache:
    """Cache of OpenAPI documents for the newest version of the catalog; a full cache drops the least recently used."""

    def __init__(self) -> None:
        self._version = -1
        self._documents: OrderedDict[OpenApiKey, tuple[QueryColumns, SerializedOpenApi]] = OrderedDict()

    def find_document(self, catalog_version: int, key: OpenApiKey, columns: QueryColumns) -> SerializedOpenApi | None:
        """Return the cached document; None if no document is cached for this catalog version, key and columns."""
        if catalog_version != self._version or key not in self._documents:
            return None
        known, document = self._documents[key]
        # Unchanged columns are the same objects, so this comparison does not read them.
        if known != columns:
            return None
        self._documents.move_to_end(key)
        return document

    def store_document(
        self, catalog_version: int, key: OpenApiKey, columns: QueryColumns, document: SerializedOpenApi
    ) -> None:
        """Cache an OpenAPI document; if its catalog version is newer, remove the documents of older versions."""
        if catalog_version < self._version:
            return
        if catalog_version > self._version:
            self._documents.clear()
            self._version = catalog_version
        self._documents[key] = columns, document
        self._documents.move_to_end(key)
        while len(self._documents) > MAX_DOCUMENTS:
            self._documents.popitem(last=False)


def serialize_path_item(item: Mapping[str, Any]) -> orjson.Fragment:
    """Serialise a Path Item (the operations of one URL path) of an OpenAPI document.

    The serializer does not release the interpreter lock. One call for thousands of paths would block the event loop,
    although the document is built in another thread. Therefore each path is serialised separately.
    """
    return orjson.Fragment(serialise_json(item))


def serialize_document(document: Mapping[str, Any]) -> SerializedOpenApi:
    """Serialise an OpenAPI document whose Path Items are already serialised."""
    body = serialise_json(document)
    return SerializedOpenApi(body, f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"')


GROUP = Group("openapi")


OPENAPI_DOCS = OperationDocs(
    (
        DocumentedReply(
            200, "The OpenAPI document.", dict[str, Any], {"openapi": "3.1.1", "info": {}, "paths": {}}, headers=ETAG
        ),
        NOT_MODIFIED,
    ),
    headers=KNOWN_VERSION,
)


_CACHE = OpenApiCache()


@GROUP.endpoint("GET", "oi-api/openapi", unknown=UnknownNames.IGNORE, docs=OPENAPI_DOCS)
async def openapi_document(call: Call) -> Reply:
    """Return the OpenAPI 3.1 document of the operations that the caller may use."""
    condition = parse_if_none_match(call.request)
    document = await _get_or_build_document(call.principal)
    headers = {
        "Content-Type": JSON,
        "ETag": document.etag,
        "Cache-Control": "private, no-cache",
        "Vary": "Authorization",
    }
    if condition.is_not_modified(document.etag):
        return Reply(304, b"", headers)
    return Reply(200, document.body, headers)


async def _get_or_build_document(principal: Principal) -> SerializedOpenApi:
    """Return the caller's OpenAPI document, from the cache or newly built."""
    await load_modules(services().runtime, "shared.openapi.document")
    from shared.openapi.document import is_usable_by_caller, list_approved_queries  # noqa: PLC0415  slow, and other routes do not need it

    app, operations = services(), await load_operations(GROUPS)
    features = {name for name in {one.feature for one in operations} if name and await app.features.has_feature(name)}
    usable = [operation for operation in operations if is_usable_by_caller(operation, principal, features)]
    catalog, server = await app.catalog.get_current_catalog(), app.settings.public_url
    queries = list_approved_queries(catalog)
    columns = await app.queries.columns.find_columns_of_queries(queries)
    bound_to = None if principal.binding is None else principal.binding.connections
    key = OpenApiKey(frozenset(operation.name for operation in usable), server, bound_to)
    cached = _CACHE.find_document(catalog.version, key, columns)
    if cached is not None:
        return cached
    by_lookup = {query.lookup: found for query, found in zip(queries, columns, strict=True)}
    # With thousands of queries the document has several megabytes.
    document = await app.runtime.run_in_thread(_build_document, usable, principal, features, catalog, by_lookup, server)
    _CACHE.store_document(catalog.version, key, columns, document)
    return document


def _build_document(
    operations: Sequence[Operation],
    principal: Principal,
    features: Collection[str],
    catalog: Catalog,
    columns_by_query: Mapping[str, Sequence[Column] | None],
    server_url: str,
) -> SerializedOpenApi:
    from shared.openapi.document import build_openapi_document_for_caller  # noqa: PLC0415  slow, and other routes do not need it

    return serialize_document(
        build_openapi_document_for_caller(
            operations,
            principal,
            features,
            catalog,
            columns_by_query,
            server=server_url,
            convert_path_item=serialize_path_item,
        )
    )
