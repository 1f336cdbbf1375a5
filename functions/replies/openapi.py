"""Replies that describe the API."""

from typing import Any

from shared.http.answers import ETAG, NOT_MODIFIED, Answer, Docs

DOCUMENT = Docs(
    (
        Answer(
            200, "The OpenAPI document.", dict[str, Any], {"openapi": "3.1.1", "info": {}, "paths": {}}, headers=ETAG
        ),
        NOT_MODIFIED,
    )
)
