"""Replies of browser pages."""

from typing import TypedDict

from shared.http.answers import ETAG, TEXT_FORM, Answer, Docs

PAGE = Docs((Answer(200, "The page.", forms={"text/html": TEXT_FORM}, headers=ETAG),), listed=False)
FILE = Docs((Answer(200, "The file.", forms={"*/*": TEXT_FORM}, headers=ETAG),), listed=False)
MOVED = Docs((Answer(302, "The page is at another address."),), listed=False)


class SignInAddresses(TypedDict):
    """Where and as what the web console signs people in."""

    authorizeUrl: str
    tokenUrl: str
    clientId: str
    scope: str


class ConsoleConfig(TypedDict):
    """What the web console is told before anybody signed in."""

    entra: SignInAddresses | None


CONSOLE_CONFIG = Docs((Answer(200, "What is public.", ConsoleConfig, {"entra": None}),), listed=False)
