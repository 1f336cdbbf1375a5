"""Replies of browser pages."""

from shared.http.answers import ETAG, TEXT_FORM, Answer, Docs

PAGE = Docs((Answer(200, "The page.", forms={"text/html": TEXT_FORM}, headers=ETAG),), listed=False)
FILE = Docs((Answer(200, "The file.", forms={"*/*": TEXT_FORM}, headers=ETAG),), listed=False)
MOVED = Docs((Answer(302, "The page is at another address."),), listed=False)
