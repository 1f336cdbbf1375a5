"""Account: its document for client discovery, and authentication with a master-key signature or an Entra token."""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

from emulators.cosmos.wire import CosmosError, CosmosRequest

_MAX_SKEW_SECONDS = 15 * 60
_CONTROL = frozenset(
    {"create_database", "delete_database", "create_container", "replace_container", "delete_container"}
)


class Consistency(StrEnum):
    """Consistency levels with their names on the wire."""

    STRONG = "Strong"
    BOUNDED_STALENESS = "BoundedStaleness"
    SESSION = "Session"
    CONSISTENT_PREFIX = "ConsistentPrefix"
    EVENTUAL = "Eventual"


_STRONGEST_FIRST = list(Consistency)


@dataclass(frozen=True)
class AccountOptions:
    """Options of the simulated account.

    Attributes:
        consistency: The default consistency level; reads are always strong.
        write_regions: The regions for writes; all URLs point to this server.
        read_regions: The regions for reads; all URLs point to this server.
        multiple_write_locations: Whether the account reports several write regions.
        bearer: Whether Entra tokens are accepted for data or rejected with 403/5300.
    """

    consistency: Consistency = Consistency.BOUNDED_STALENESS
    write_regions: tuple[str, ...] = ("West Europe",)
    read_regions: tuple[str, ...] = ("West Europe",)
    multiple_write_locations: bool = False
    bearer: Literal["accept", "deny"] = "accept"

    def check_consistency(self, request: CosmosRequest) -> None:
        """Reject a request with a stronger consistency level than the account.

        Raises:
            CosmosError: 400 if the level is unknown or stronger than the account's.
        """
        level = request.header("x-ms-consistency-level")
        if not level:
            return
        if level not in _STRONGEST_FIRST:
            raise CosmosError(400, f"'{level}' is not a valid consistency level.")
        if _STRONGEST_FIRST.index(Consistency(level)) < _STRONGEST_FIRST.index(self.consistency):
            raise CosmosError(
                400,
                f"ConsistencyLevel {level} specified in the request is invalid when service is configured"
                f" with consistency level {self.consistency}.",
            )

    def document(self, endpoint: str) -> dict[str, Any]:
        """Return the body of `GET /`.

        Args:
            endpoint: The URL of the server, used for all regions.
        """
        return {
            "_self": "",
            "id": "cosmos-test-server",
            "_rid": "cosmos-test-server.local",
            "media": "//media/",
            "addresses": "//addresses/",
            "_dbs": "//dbs/",
            "writableLocations": _locations(self.write_regions, endpoint),
            "readableLocations": _locations(self.read_regions, endpoint),
            "enableMultipleWriteLocations": self.multiple_write_locations,
            "enablePerPartitionFailoverBehavior": False,
            "continuousBackupEnabled": False,
            "userReplicationPolicy": {"asyncReplication": False, "minReplicaSetSize": 3, "maxReplicasetSize": 4},
            "userConsistencyPolicy": {"defaultConsistencyLevel": str(self.consistency)},
            "systemReplicationPolicy": {"minReplicaSetSize": 3, "maxReplicasetSize": 4},
            "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
            "queryEngineConfiguration": "{}",
        }


def _locations(regions: tuple[str, ...], endpoint: str) -> list[dict[str, str]]:
    return [{"name": region, "databaseAccountEndpoint": endpoint} for region in regions]


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
