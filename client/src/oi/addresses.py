"""Checks of service addresses (URLs), their form in messages without secrets, and the proxy for an address."""

from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

_THIS_COMPUTER = frozenset({"localhost", "127.0.0.1", "::1"})


def is_this_computer(url: str) -> bool:
    """Return whether a URL names this computer; False for a malformed URL.

    Example:
        >>> is_this_computer("http://127.0.0.1:7071"), is_this_computer("https://plant.example")
        (True, False)
    """
    try:
        return urlsplit(url).hostname in _THIS_COMPUTER
    except ValueError:
        return False


def can_use_proxy(url: str) -> bool:
    """Return whether requests to a URL can use the proxy of the environment variables.

    Requests to an http address of this computer cannot: the proxy would get the credential in clear text, and could not
    reach this computer.
    """
    return not (url.lower().startswith("http:") and is_this_computer(url))


def find_proxy_url(url: str) -> str | None:
    """Return the proxy that the environment variables name for requests to a URL; None if there is none.

    The variable for the scheme, such as ``HTTPS_PROXY``, has priority over ``ALL_PROXY``. ``NO_PROXY`` lists hosts to
    which requests use no proxy. ``ALL_PROXY`` has the same effect as in the HTTP library; the WebSocket library treats
    it differently.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or not can_use_proxy(url) or proxy_bypass(parts.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def format_url_without_secrets(url: str) -> str:
    """Return the scheme, host and path of a URL; "another address" if the URL is malformed or empty.

    User name, query and fragment are omitted, because they may contain secrets such as the signature of a link.

    Example:
        >>> format_url_without_secrets("https://user:secret@plant.example:8443/a?sig=secret#secret")
        'https://plant.example:8443/a'
    """
    unnamed = "another address"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return unnamed
    host = parts.netloc.rpartition("@")[2]
    return (url.isprintable() and urlunsplit((parts.scheme, host, parts.path, "", ""))) or unnamed


def describe_redirect(url: str, location: str) -> str:
    """Return the error message for a redirect, which the client does not follow.

    Args:
        url: address of the request.
        location: value of the header ``Location``; empty if it is missing.
    """
    source, target = format_url_without_secrets(url), format_url_without_secrets(location)
    return f"{source} redirects to {target}; use the address of the service."


def check_address_protects_credentials(url: str) -> None:
    """Check that the address of a service protects a credential: https, or http to this computer.

    Raises:
        ValueError: the text is not an https address, or contains a user name; http is allowed only to this computer.
    """
    check_address_has_no_user_name(url)
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if not host or not url.isprintable() or " " in url or parts.scheme not in {"https", "http"}:
        raise ValueError(
            f"{url!r} is not a valid address; expected https:// and a host name, such as https://plant.example. "
            "http:// is allowed only to this computer."
        )
    if parts.scheme == "http" and not is_this_computer(url):
        raise ValueError(f"{url} must begin with https://; http:// would send the credential unprotected.")


def check_address_has_no_user_name(url: str) -> None:
    """Check that the address of a service contains no user name.

    Raises:
        ValueError: the address contains a user name, and perhaps a password; the message does not contain the address.
    """
    if "@" in url:
        # Messages contain the address, so it must not contain a password.
        raise ValueError(
            "The address must not contain a user name or a password; use one such as https://plant.example."
        )
