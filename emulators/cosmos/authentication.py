"""Authentication with a master-key signature, or with an Entra token that is not verified."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qsl, unquote

from emulators.cosmos.account import AccountOptions
from emulators.cosmos.wire import CosmosError, CosmosRequest

_MAX_SKEW_SECONDS = 15 * 60
_CONTROL = frozenset(
    {"create_database", "delete_database", "create_container", "replace_container", "delete_container"}
)


def authenticate(request: CosmosRequest, key: str, options: AccountOptions) -> None:
    """Check the authorization of a request.

    Args:
        request: The request.
        key: The account's master key, base64.
        options: The options of the account, which accept or reject Entra tokens.

    Raises:
        CosmosError: 401 for a missing or wrong signature, 403 for an old date or a missing right.
    """
    fields = dict(parse_qsl(unquote(request.header("authorization")).replace("+", "%2B"), keep_blank_values=True))
    if fields.get("ver") != "1.0" or not fields.get("sig"):
        raise CosmosError(
            401, "Required Header authorization is missing. Ensure a valid Authorization token is passed."
        )
    if fields.get("type") == "aad":
        _check_token(request, options)
        return
    if fields.get("type") != "master":
        raise CosmosError(401, "The authorization token type is not supported.")
    _check_date(request)
    if not any(hmac.compare_digest(fields["sig"], sign(request, link, key)) for link in _links(request)):
        raise CosmosError(
            401,
            "The input authorization token can't serve the request. The wrong key is being used or the expected"
            " payload is not built as per the protocol.",
        )


def sign(request: CosmosRequest, link: str, key: str) -> str:
    """Compute the signature of a request for a resource link (REST reference, access control)."""
    _, resource_type = _signed_resource(request)
    date, http_date = request.header("x-ms-date").lower(), request.header("date").lower()
    text = f"{request.method.lower()}\n{resource_type}\n{link}\n{date}\n{http_date}\n"
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def _signed_resource(request: CosmosRequest) -> tuple[tuple[str, ...], str]:
    """Return the signed link as segments, and the resource type; a feed is signed with its parent's link."""
    segments = request.segments
    if len(segments) % 2 == 1:
        return segments[:-1], segments[-1]
    return segments, segments[-2] if segments else ""


def _links(request: CosmosRequest) -> list[str]:
    link, _ = _signed_resource(request)
    # A link of resource ids is signed as its last id in lower case; the path does not show the kind of link.
    return ["/".join(link), link[-1].lower() if link else ""]


def _check_date(request: CosmosRequest) -> None:
    try:
        sent = parsedate_to_datetime(request.header("x-ms-date") or request.header("date"))
    except ValueError as error:
        raise CosmosError(401, "The date header is missing or is not an RFC 1123 date.") from error
    if abs((datetime.now(UTC) - sent).total_seconds()) > _MAX_SKEW_SECONDS:
        raise CosmosError(403, "The authorization token is not valid at the current time.")


def _check_token(request: CosmosRequest, options: AccountOptions) -> None:
    if options.bearer == "deny" or request.operation in _CONTROL:
        raise CosmosError(
            403,
            "Request blocked by Auth: the principal does not have the required RBAC permissions to perform"
            f" {request.operation}.",
            substatus=5300,
        )
