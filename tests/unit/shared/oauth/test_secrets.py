"""Tests of authorization codes, refresh tokens and PKCE secrets."""

import pytest

from shared.oauth import secrets
from shared.runtime import SYSTEM_RUNTIME

GRANT = "0" * 32


def test_codes_and_refresh_tokens_are_parsed() -> None:
    """Codes and refresh tokens are parsed into parts; refresh tokens of a grant share a family but not a secret."""
    code = secrets.generate_authorization_code(SYSTEM_RUNTIME, GRANT)
    assert secrets.parse_authorization_code(str(code)) == code
    first = secrets.generate_refresh_token(SYSTEM_RUNTIME, GRANT)
    second = secrets.generate_refresh_token(SYSTEM_RUNTIME, GRANT, first.family)
    assert secrets.parse_refresh_token(str(first)) == first
    assert first.family == second.family
    assert first.secret != second.secret


@pytest.mark.parametrize("text", ["", "oic_", "oir_", f"oic_{GRANT}_short", f"oic_{GRANT}_{'ä' * 43}", "x" * 10_000])
def test_invalid_codes_are_parsed_to_none(text: str) -> None:
    """A text that is no code or refresh token is parsed to None."""
    assert secrets.parse_authorization_code(text) is None
    assert secrets.parse_refresh_token(text) is None


def test_the_verifier_of_the_rfc_is_valid() -> None:
    """The code verifier of RFC 7636, appendix B, matches its challenge; other verifiers do not."""
    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert secrets.is_code_verifier_valid("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", challenge)
    for wrong in ("", challenge, "x" * 43, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjX", "ä" * 43):
        assert not secrets.is_code_verifier_valid(wrong, challenge)


def test_secrets_match_only_their_digest() -> None:
    """A secret matches only its own digest."""
    assert secrets.is_secret_valid("a", secrets.compute_secret_digest("a"))
    assert not secrets.is_secret_valid("b", secrets.compute_secret_digest("a"))
