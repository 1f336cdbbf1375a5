"""Rules for the addresses of services."""

from urllib.parse import urlsplit

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
