"""Tests of the security headers of replies."""

from shared.http.security_headers import SECURITY_HEADERS, add_security_headers


def test_missing_security_headers_are_added() -> None:
    """A reply without security headers gets them; its other headers stay."""
    headers = {"Content-Type": "text/plain"}
    add_security_headers(headers)
    assert headers == {"Content-Type": "text/plain", **SECURITY_HEADERS}


def test_security_headers_of_a_reply_are_not_replaced() -> None:
    """A header that the reply sets itself is not replaced."""
    headers = {"Cache-Control": "max-age=60"}
    add_security_headers(headers)
    assert headers == {**SECURITY_HEADERS, "Cache-Control": "max-age=60"}
