"""Replies of the live stream."""

from typing import TypedDict

from shared.http.operation_docs import DocumentedReply, OperationDocs


class LinkToStream(TypedDict):
    """A WebSocket URL, and until when it opens a stream."""

    url: str
    expiresAt: str


_URL = "wss://plant-a.webpubsub.azure.com/client/hubs/live?access_token=eyJhbGciOiJIUzI1NiJ9.e30.c2ln&surface=cooling"

STREAM = OperationDocs(
    (
        DocumentedReply(101, "Upgraded: impulses come as text messages, one JSON object each."),
        DocumentedReply(
            307,
            "This host cannot upgrade; the same stream is at the address named.",
            headers={"Location": "A WebSocket URL."},
        ),
    ),
    refusals=(404, 426, 503),
)
NEGOTIATED = OperationDocs(
    (DocumentedReply(200, "A link.", LinkToStream, {"url": _URL, "expiresAt": "2026-01-05T09:00:00.000000Z"}),),
    refusals=(404, 503),
)
EVENTS = OperationDocs(listed=False)
