"""Tests of replies of the OAuth endpoints."""

import json
from datetime import UTC, datetime

from functions.oauth_replies import build_oauth_error_reply, build_token_reply
from shared.auth.issuer import NewToken
from shared.errors import Kind, WorkspaceError


def test_errors_have_the_form_of_rfc_6749() -> None:
    """An OAuth error has a code and a description, and is not cached; a 401 names the scheme of the credentials."""
    error = WorkspaceError(Kind.UNAUTHENTICATED, "OAUTH_CLIENT_UNAUTHENTICATED", "Wrong \u201ckey\u201d.")
    reply = build_oauth_error_reply(error)
    body = json.loads(bytes(reply.body))
    assert set(body) == {"error", "error_description"}
    assert body["error_description"].isascii()
    assert reply.status == 401
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["WWW-Authenticate"].startswith("Basic ")


def test_expires_in_equals_the_lifetime_in_the_token_claims() -> None:
    """`expires_in` equals `exp` minus `iat` of the token, so that a token of 60 minutes has exactly 3600."""
    issued_at = datetime(2026, 1, 5, 8, 0, 0, 900_000, UTC)
    token = NewToken("header.claims.signature", datetime(2026, 1, 5, 9, 0, 0, 0, UTC), (), issued_at, "id")
    assert json.loads(bytes(build_token_reply(token).body))["expires_in"] == 3600
