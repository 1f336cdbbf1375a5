"""HTTP operation that returns the OpenAPI document."""

import hashlib
from typing import Any

from functions import GROUPS
from functions.lazy_groups import load_operations
from shared.auth.principals import Principal
from shared.http.messages import JSON, Reply, json_bytes
from shared.http.operation_docs import ETAG, NOT_MODIFIED, DocumentedReply, OperationDocs
from shared.http.operations import Call, Group
from shared.http.unknown_names import UnknownNames
from shared.wiring import services
from shared.worker_threads import load_modules

GROUP = Group("openapi")


OPENAPI_DOCS = OperationDocs(
    (
        DocumentedReply(
            200, "The OpenAPI document.", dict[str, Any], {"openapi": "3.1.1", "info": {}, "paths": {}}, headers=ETAG
        ),
        NOT_MODIFIED,
    )
)


@GROUP.endpoint("GET", "oi-api/openapi", unknown=UnknownNames.IGNORE, docs=OPENAPI_DOCS)
async def openapi_document(call: Call) -> Reply:
    """Return the OpenAPI 3.1 document of the operations that the caller may use."""
    body = json_bytes(await _build_document(call.principal))
    etag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    headers = {"Content-Type": JSON, "ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
    if etag in call.request.headers.get("if-none-match", ""):
        return Reply(304, b"", headers)
    return Reply(200, body, headers)


async def _build_document(principal: Principal) -> dict[str, Any]:
    await load_modules("shared.openapi.document")
    from shared.openapi.document import build_caller_document  # noqa: PLC0415  slow, and other routes do not need it

    app, operations = services(), await load_operations(GROUPS)
    features = {name for name in {one.feature for one in operations} if name and await app.features.has(name)}
    catalog, server = await app.catalog.current(), app.settings.public_url
    return await build_caller_document(
        operations, principal, features, catalog, app.queries.columns.find, server=server
    )
