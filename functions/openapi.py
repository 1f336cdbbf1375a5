"""The API's own description, as far as the caller may use it."""

import hashlib
from typing import Any

from functions import GROUPS
from functions.lazy_groups import all_operations
from functions.replies import openapi as replies
from shared.auth.principals import Principal
from shared.http.messages import JSON, Reply, json_bytes
from shared.http.operations import Call, Group
from shared.http.unknown_names import UnknownNames
from shared.wiring import services
from shared.worker_threads import load_modules

GROUP = Group("openapi")


@GROUP.endpoint("GET", "oi-api/openapi", unknown=UnknownNames.IGNORE, docs=replies.DOCUMENT)
async def openapi_document(call: Call) -> Reply:
    """Describe the operations that the caller may use, as OpenAPI 3.1."""
    body = json_bytes(await _document(call.principal))
    etag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    headers = {"Content-Type": JSON, "ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
    if etag in call.request.headers.get("if-none-match", ""):
        return Reply(304, b"", headers)
    return Reply(200, body, headers)


async def _document(principal: Principal) -> dict[str, Any]:
    await load_modules("shared.openapi.document")
    from shared.openapi.document import describe  # noqa: PLC0415  schemas cost time that other routes do not need

    app, operations = services(), await all_operations(GROUPS)
    features = {name for name in {one.feature for one in operations} if name and await app.has_feature(name)}
    catalog, server = await app.catalog.current(), app.settings.public_url
    return await describe(operations, principal, features, catalog, app.query_columns.find, server=server)
