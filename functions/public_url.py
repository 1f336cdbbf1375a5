"""The address of the service as its callers see it."""

from shared.http.messages import Request
from shared.wiring import services


def public_url(request: Request) -> str:
    """Return scheme and authority that links in a reply begin with, without a slash at the end.

    ``PUBLIC_URL`` wins, since a gateway may replace the Host header; otherwise the address of the request counts.
    """
    if services().settings.public_url:
        return services().settings.public_url
    scheme = request.headers.get("x-forwarded-proto", "http").partition(",")[0].strip()
    return f"{scheme if scheme in {'http', 'https'} else 'https'}://{request.headers.get('host', '')}"
