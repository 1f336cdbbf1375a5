"""OAuth scopes: access rights separated by spaces (RFC 6749 section 3.3)."""

from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.oauth.errors import OAuthError, OAuthErrorCode

DEFAULT_RIGHTS = ROLE_RIGHTS[Role.VIEWER]
"""Access rights that a client requests if its authorization request has no scope."""


def parse_scope(scope: str) -> frozenset[AccessRight]:
    """Parse a scope into access rights.

    Raises:
        OAuthError: ``invalid_scope`` if the scope is empty or contains an unknown access right.
    """
    names = [name for name in scope.split(" ") if name]
    if not names:
        raise build_invalid_scope_error("The parameter scope is empty; omit it for the default.")
    known = frozenset(map(str, AccessRight))
    unknown = sorted({name for name in names if name not in known})
    if unknown:
        raise build_invalid_scope_error(
            f"The parameter scope contains unknown access rights: {', '.join(unknown)[:256]}."
        )
    return frozenset(AccessRight(name) for name in names)


def format_scope(rights: frozenset[AccessRight] | tuple[AccessRight, ...]) -> str:
    """Format access rights as a scope."""
    return " ".join(sorted(rights))


def build_invalid_scope_error(description: str) -> OAuthError:
    """Build the error for a scope that cannot be granted."""
    return OAuthError(OAuthErrorCode.INVALID_SCOPE, description)
