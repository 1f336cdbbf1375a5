"""Form of authorization codes and refresh tokens; only digests of their secrets are stored.

A code is ``oic_<grant id>_<secret>``, a refresh token ``oir_<grant id>_<family secret>_<secret>``. The secrets have 256
random bits. The family secret is the same in all refresh tokens of a grant.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass

from shared.runtime import Runtime

_CODE = re.compile(r"oic_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")
_REFRESH = re.compile(r"oir_([0-9a-f]{32})_([A-Za-z0-9_-]{43})_([A-Za-z0-9_-]{43})")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class CodeText:
    """Authorization code of a grant, in its parts; :func:`str` returns its text."""

    grant_id: str
    secret: str

    def __str__(self) -> str:
        """Return the text of the authorization code."""
        return f"oic_{self.grant_id}_{self.secret}"


@dataclass(frozen=True, slots=True)
class RefreshText:
    """Refresh token of a grant, in its parts; :func:`str` returns its text.

    ``family`` is the secret that all refresh tokens of the grant have in common.
    """

    grant_id: str
    family: str
    secret: str

    def __str__(self) -> str:
        """Return the text of the refresh token."""
        return f"oir_{self.grant_id}_{self.family}_{self.secret}"


def generate_authorization_code(runtime: Runtime, grant_id: str) -> CodeText:
    """Generate the authorization code of a grant."""
    return CodeText(grant_id, runtime.new_token(32))


def generate_refresh_token(runtime: Runtime, grant_id: str, family_secret: str = "") -> RefreshText:
    """Generate a refresh token of a grant.

    Args:
        runtime: source of randomness.
        grant_id: id of the grant.
        family_secret: secret that all refresh tokens of the grant have in common; empty to generate this secret for
            the first token.
    """
    return RefreshText(grant_id, family_secret or runtime.new_token(32), runtime.new_token(32))


def parse_authorization_code(text: str) -> CodeText | None:
    """Parse an authorization code; return None if the text does not have the form of a code."""
    match = _CODE.fullmatch(text)
    return CodeText(*match.groups()) if match else None


def parse_refresh_token(text: str) -> RefreshText | None:
    """Parse a refresh token; return None if the text does not have the form of a refresh token."""
    match = _REFRESH.fullmatch(text)
    return RefreshText(*match.groups()) if match else None


def compute_secret_digest(secret: str) -> str:
    """Compute the stored digest of a secret. A fast hash is sufficient for a secret of 256 random bits."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def is_secret_valid(secret: str, digest: str) -> bool:
    """Return whether a secret matches its stored digest; the comparison takes constant time."""
    return hmac.compare_digest(compute_secret_digest(secret), digest)


def is_code_verifier_valid(code_verifier: str, code_challenge: str) -> bool:
    """Return whether a PKCE code verifier belongs to a code challenge of the method S256 (RFC 7636 section 4.6)."""
    if not _VERIFIER.fullmatch(code_verifier):
        return False
    computed = urlsafe_b64encode(hashlib.sha256(code_verifier.encode("ascii")).digest()).rstrip(b"=").decode("ascii")
    return hmac.compare_digest(computed, code_challenge)
