"""Tests of replies of the OAuth endpoints."""

import json

from functions.oauth_replies import build_oauth_error
from shared.errors import Kind, WorkspaceError


def test_errors_have_the_form_of_rfc_6749() -> None:
    """An error has a code and a description, is never cached, and a 401 names the scheme of the credentials."""
    error = WorkspaceError(Kind.UNAUTHENTICATED, "OAUTH_CLIENT_UNAUTHENTICATED", "Wrong \u201ckey\u201d.")
    reply = build_oauth_error(error)
    body = json.loads(bytes(reply.body))
    assert set(body) == {"error", "error_description"}
    assert body["error_description"].isascii()
    assert reply.status == 401
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["WWW-Authenticate"].startswith("Basic ")
