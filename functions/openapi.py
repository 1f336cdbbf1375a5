"""HTTP operation that returns the OpenAPI document."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from functions import GROUPS
from functions.lazy_groups import load_operations
from functions.openapi_documents import (
    OpenApiCache,
    OpenApiKey,
    SerializedOpenApi,
    serialize_document,
    serialize_path_item,
)
from shared.auth.principals import Principal
from shared.catalog.snapshot import Catalog
from shared.http.messages import JSON, Reply
from shared.http.operation_docs import ETAG, NOT_MODIFIED, DocumentedReply, OperationDocs
from shared.http.operations import Call, Group, Operation
from shared.http.unknown_names import UnknownNames
from shared.interpreter import load_modules
from shared.warm_queries.ports import Column
from shared.wiring import services

GROUP = Group("openapi")


OPENAPI_DOCS = OperationDocs(
    (
        DocumentedReply(
            200, "The OpenAPI document.", dict[str, Any], {"openapi": "3.1.1", "info": {}, "paths": {}}, headers=ETAG
        ),
        NOT_MODIFIED,
    )
)


_CACHE = OpenApiCache()


@GROUP.endpoint("GET", "oi-api/openapi", unknown=UnknownNames.IGNORE, docs=OPENAPI_DOCS)
async def openapi_document(call: Call) -> Reply:
    """Return the OpenAPI 3.1 document of the operations that the caller may use."""
    document = await _find_document(call.principal)
    headers = {
        "Content-Type": JSON,
        "ETag": document.etag,
        "Cache-Control": "private, no-cache",
        "Vary": "Authorization",
    }
    if document.etag in call.request.headers.get("if-none-match", ""):
        return Reply(304, b"", headers)
    return Reply(200, document.body, headers)


async def _find_document(principal: Principal) -> SerializedOpenApi:
    """Return the caller's OpenAPI document, from the cache or newly built."""
    await load_modules(services().runtime, "shared.openapi.document")
    from shared.openapi.document import is_usable, list_approved_queries  # noqa: PLC0415  slow, and other routes do not need it

    app, operations = services(), await load_operations(GROUPS)
    features = {name for name in {one.feature for one in operations} if name and await app.features.has(name)}
    usable = [operation for operation in operations if is_usable(operation, principal, features)]
    catalog, server = await app.catalog.current(), app.settings.public_url
    queries = list_approved_queries(catalog)
    columns = await app.queries.columns.find_all(queries)
    key = OpenApiKey(frozenset(operation.name for operation in usable), server)
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
    columns: Mapping[str, Sequence[Column] | None],
    server: str,
) -> SerializedOpenApi:
    from shared.openapi.document import build_caller_document  # noqa: PLC0415  slow, and other routes do not need it

    return serialize_document(
        build_caller_document(
            operations, principal, features, catalog, columns, server=server, convert=serialize_path_item
        )
    )
