"""Replies of browser pages."""

from typing import TypedDict

from shared.http.operation_docs import ETAG, TEXT_FORM, DocumentedReply, OperationDocs

PAGE = OperationDocs((DocumentedReply(200, "The page.", forms={"text/html": TEXT_FORM}, headers=ETAG),), listed=False)
FILE = OperationDocs((DocumentedReply(200, "The file.", forms={"*/*": TEXT_FORM}, headers=ETAG),), listed=False)
MOVED = OperationDocs((DocumentedReply(302, "The page is at another address."),), listed=False)


class SignInAddresses(TypedDict):
    """Where and as what the web console signs people in."""

    authorizeUrl: str
    tokenUrl: str
    clientId: str
    scope: str


class ConsoleConfig(TypedDict):
    """What the web console is told before anybody signed in."""

    entra: SignInAddresses | None


CONSOLE_CONFIG = OperationDocs((DocumentedReply(200, "What is public.", ConsoleConfig, {"entra": None}),), listed=False)
