"""Public base URL of the service."""

from shared.http.messages import Request
from shared.wiring import services


def public_url(request: Request) -> str:
    """Return scheme and authority of links in replies, without a trailing slash.

    The setting ``PUBLIC_URL`` has priority, because a gateway may replace the Host header of the request.
    """
    if services().settings.public_url:
        return services().settings.public_url
    scheme = request.headers.get("x-forwarded-proto", "http").partition(",")[0].strip()
    return f"{scheme if scheme in {'http', 'https'} else 'https'}://{request.headers.get('host', '')}"
