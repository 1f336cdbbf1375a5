"""CORS: web pages of other origins can call the API only if the deployment configures their origins."""

from collections.abc import Collection, Mapping
from typing import Final

from shared.http.messages import Reply, Request

ALLOWED_HEADERS: Final = (
    "Authorization, Content-Encoding, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, "
    "MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Oi-Version, Prefer, x-request-id"
)
"""Request headers that scripts may send; Mcp-* and Last-Event-ID belong to the Model Context Protocol."""

EXPOSED_HEADERS: Final = (
    "Accept-Encoding, Allow, Content-Disposition, Deprecation, ETag, Link, Location, Oi-Version, "
    "Preference-Applied, RateLimit, RateLimit-Policy, Retry-After, Sunset, WWW-Authenticate, "
    "x-provenance-damaged, x-provenance-has-more, x-provenance-ignored, x-provenance-scanned, "
    "x-provenance-target, x-query-approved-at, x-query-approved-by, x-query-executed-at, "
    "x-query-execution-time-ms, x-query-from-cache, x-query-truncated, x-request-id"
)
PREFLIGHT_SECONDS: Final = 600
"""Time for which browsers may store the reply to a preflight request."""


class Cors:
    """CORS policy (Fetch standard). It allows no cookies, because credentials are sent in the Authorization header.

    Args:
        origins: allowed origins, such as ``https://dash.example``; by default, no origin is allowed.
    """

    def __init__(self, origins: Collection[str] = ()) -> None:
        self._origins = frozenset(origins)

    def build_preflight_reply(self, request: Request, route_methods: Collection[str]) -> Reply | None:
        """Build the reply to a CORS preflight request; return None for other requests and for unknown origins.

        Args:
            request: request from a browser.
            route_methods: HTTP methods that the requested route has.
        """
        method = request.headers.get("access-control-request-method")
        if request.method != "OPTIONS" or method is None or not self._has_known_origin(request):
            return None
        headers = {
            "Access-Control-Allow-Methods": ", ".join(sorted(route_methods)),
            "Access-Control-Allow-Headers": ALLOWED_HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
        }
        return Reply(204, b"", headers)

    def build_headers(self, request: Request) -> Mapping[str, str]:
        """Return the headers that allow the request's origin to read the reply; no headers for an unknown origin."""
        if not self._has_known_origin(request):
            return {}
        return {
            "Access-Control-Allow-Origin": request.headers["origin"],
            "Access-Control-Expose-Headers": EXPOSED_HEADERS,
        }

    def is_reply_dependent_on_origin(self) -> bool:
        """Return whether the reply depends on the request's Origin header.

        Caches must then store one reply for each origin.
        """
        return bool(self._origins)

    def _has_known_origin(self, request: Request) -> bool:
        return request.headers.get("origin", "") in self._origins
