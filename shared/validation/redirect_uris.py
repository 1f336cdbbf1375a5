"""Redirect URIs of OAuth clients: rules for declared URIs, and the comparison with a requested URI.

URIs are compared as text, because parsers disagree about unusual URIs (RFC 9700 section 4.1.3).
"""

import re
from typing import Final

MAX_LENGTH: Final = 2_048
_ALLOWED: Final = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""Characters of a URI (RFC 3986 section 2)."""

_LOOPBACK: Final = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?((?:[/?].*)?)", re.DOTALL)
_APP_SCHEME: Final = re.compile(r"[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+")
_WEB_SCHEMES: Final = frozenset({"https", "http"})
_AUTHORITY: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


def find_redirect_uri_error(uri: str) -> str | None:
    """Return an error message for a declared redirect URI that breaks a rule; None if it is valid.

    Valid are https URIs, http URIs of this machine, and URIs of an installed app whose scheme is a reversed domain name
    (RFC 8252 section 7).
    """
    if len(uri) > MAX_LENGTH or not _ALLOWED.fullmatch(uri):
        return f"must be a URI of at most {MAX_LENGTH} characters"
    if "#" in uri:
        return "must not contain a fragment (`#`)"
    scheme, _, rest = uri.partition(":")
    if scheme in _WEB_SCHEMES:
        return _find_web_uri_error(uri, scheme, rest)
    if _APP_SCHEME.fullmatch(scheme):
        return None
    return "must begin with `https://`, or have a scheme that contains a dot, such as `com.example.app`"


def _find_web_uri_error(uri: str, scheme: str, uri_without_scheme: str) -> str | None:
    if not uri_without_scheme.startswith("//") or not _AUTHORITY.fullmatch(_get_host_and_port(uri_without_scheme)):
        return "must have a host and no user name"
    if scheme == "http" and not _LOOPBACK.fullmatch(uri):
        return "must begin with `https://`, or `http://` and 127.0.0.1, [::1] or localhost"
    return None


def is_redirect_allowed(requested_uri: str, declared_uri: str) -> bool:
    """Return whether a requested redirect URI equals a declared one; a loopback URI may have any port."""
    if requested_uri == declared_uri:
        return True
    ours, theirs = _LOOPBACK.fullmatch(declared_uri), _LOOPBACK.fullmatch(requested_uri)
    if ours is None or theirs is None or find_redirect_uri_error(requested_uri) is not None:
        return False
    return ours.groups() == theirs.groups()


def describe_redirect_host(uri: str) -> str:
    """Return the destination of a valid redirect URI for display: host and port, or the scheme of an app.

    An app's URI is never described by its host, because the browser opens the app and ignores the host.
    """
    scheme, _, rest = uri.partition(":")
    return _get_host_and_port(rest) if scheme in _WEB_SCHEMES else f"{scheme}:"


def _get_host_and_port(uri_without_scheme: str) -> str:
    """Return the host and port of a web URI, of which the scheme and its colon are already removed."""
    return re.split(r"[/?]", uri_without_scheme.removeprefix("//"), maxsplit=1)[0]
