"""Replies that describe the API."""

from typing import Any

from shared.http.operation_docs import ETAG, NOT_MODIFIED, DocumentedReply, OperationDocs

DOCUMENT = OperationDocs(
    (
        DocumentedReply(
            200, "The OpenAPI document.", dict[str, Any], {"openapi": "3.1.1", "info": {}, "paths": {}}, headers=ETAG
        ),
        NOT_MODIFIED,
    )
)
