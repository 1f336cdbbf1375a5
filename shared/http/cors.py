"""Cross-origin requests from browsers: closed unless the deployment names origins."""

from collections.abc import Collection, Mapping
from typing import Final

from shared.http.messages import Reply, Request

ALLOWED_HEADERS: Final = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, MCP-Protocol-Version, "
    "Mcp-Method, Mcp-Name, Mcp-Session-Id, Prefer, x-request-id"
)
"""Those that begin with Mcp, and Last-Event-ID, belong to the revisions of the Model Context Protocol."""

EXPOSED_HEADERS: Final = (
    "Content-Disposition, ETag, Link, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, "
    "WWW-Authenticate, x-provenance-damaged, x-provenance-has-more, x-provenance-ignored, x-provenance-scanned, "
    "x-provenance-target, x-query-approved-at, x-query-approved-by, x-query-executed-at, x-query-from-cache, "
    "x-query-truncated, x-request-id"
)
PREFLIGHT_SECONDS: Final = 600


class Cors:
    """Lets scripts of other origins read replies (Fetch standard); credentials travel in Authorization, not in cookies.

    Args:
        origins: exact origins, such as ``https://dash.example``; none by default.
    """

    def __init__(self, origins: Collection[str] = ()) -> None:
        self._origins = frozenset(origins)

    def preflight(self, request: Request, allowed: Collection[str]) -> Reply | None:
        """Return the answer to a browser that asks whether it may ask; None for anything else and for unknown origins.

        Args:
            request: what was sent.
            allowed: methods that the address answers.
        """
        asked = request.headers.get("access-control-request-method")
        if request.method != "OPTIONS" or asked is None or not self._known(request):
            return None
        headers = {
            "Access-Control-Allow-Methods": ", ".join(sorted(allowed)),
            "Access-Control-Allow-Headers": ALLOWED_HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        }
        return Reply(204, b"", headers)

    def headers(self, request: Request) -> Mapping[str, str]:
        """Return the headers that let the request's origin read its reply; nothing for one that is not known."""
        if not self._known(request):
            return {}
        return {
            "Access-Control-Allow-Origin": request.headers["origin"],
            "Access-Control-Expose-Headers": EXPOSED_HEADERS,
        }

    def varies(self) -> bool:
        """Return whether replies depend on the origin."""
        return bool(self._origins)

    def _known(self, request: Request) -> bool:
        return request.headers.get("origin", "") in self._origins
