"""Simulated Cosmos DB account: the properties that clients read, and authentication by master key or Entra token.

`ThroughputBudget` limits the request units per second of a container; by default, there is no limit.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote

from emulators.cosmos.wire import CosmosError, CosmosRequest


class ThroughputBudget:
    """Token bucket that limits the request units per second of one container.

    As in the Azure service, the charge of a request is known only after its execution. Therefore a request is accepted
    as long as the container has units left, even if its charge then exceeds them; later requests are rejected until the
    balance is positive again.

    Args:
        units_per_second: The request units that become available in each second; this number is also the capacity
            of the bucket.
    """

    def __init__(self, units_per_second: float) -> None:
        self._rate = units_per_second
        self._used = 0.0
        self._at: float | None = None

    def require_request_units(self, now_seconds: float) -> None:
        """Check, before a request is executed, that the container has request units left.

        Args:
            now_seconds: The current time in seconds since 1970.

        Raises:
            CosmosError: 429 (sub-status 3200), with the time until the container accepts requests again.
        """
        passed = 0.0 if self._at is None else max(0.0, now_seconds - self._at)
        self._at = now_seconds
        self._used = max(0.0, self._used - passed * self._rate)
        if self._used >= self._rate:
            wait_ms = int((self._used - self._rate) / self._rate * 1000) + 1
            raise CosmosError(429, "The request rate is too large. More request units may be needed.", 3200, wait_ms)

    def spend_request_units(self, units: float) -> None:
        """Subtract the charge of an executed request from the remaining request units of the container."""
        self._used += units


_MAX_SKEW_SECONDS = 15 * 60
_CONTROL = frozenset(
    {"create_database", "delete_database", "create_container", "replace_container", "delete_container"}
)


class Consistency(StrEnum):
    """Consistency levels of Cosmos DB, strongest first, with their names in the REST protocol."""

    STRONG = "Strong"
    BOUNDED_STALENESS = "BoundedStaleness"
    SESSION = "Session"
    CONSISTENT_PREFIX = "ConsistentPrefix"
    EVENTUAL = "Eventual"


_STRONGEST_FIRST = list(Consistency)


@dataclass(frozen=True)
class AccountOptions:
    """Options of the simulated Cosmos DB account.

    Attributes:
        consistency: The default consistency level that the account reports; actual reads are always strong.
        write_regions: Names of the regions that accept writes; the URLs of all regions point to this server.
        read_regions: Names of the regions that accept reads; the URLs of all regions point to this server.
        multiple_write_locations: True if the account reports that clients may write to several regions.
        per_partition_failover: True if the account reports per-partition automatic failover; no partition ever fails
            over.
        request_units: Request units per second that each container accepts; None for no limit.
        bearer: `accept` if requests for data may use Entra tokens; `deny` to reject these requests with status 403,
            sub-status 5300.
    """

    consistency: Consistency = Consistency.BOUNDED_STALENESS
    write_regions: tuple[str, ...] = ("West Europe",)
    read_regions: tuple[str, ...] = ("West Europe",)
    multiple_write_locations: bool = False
    per_partition_failover: bool = False
    request_units: float | None = None
    bearer: Literal["accept", "deny"] = "accept"

    def check_requested_consistency(self, request: CosmosRequest) -> None:
        """Check that the consistency level that a request demands is not stronger than the account's level.

        Raises:
            CosmosError: 400 if the requested level is unknown, or stronger than the account's.
        """
        level = request.read_header("x-ms-consistency-level")
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

    def build_account_properties(self, endpoint: str) -> dict[str, Any]:
        """Build the JSON properties of the account, which are the reply to `GET /`.

        Args:
            endpoint: The URL of this server, which the properties state for every region.
        """
        return {
            "_self": "",
            "id": "cosmos-test-server",
            "_rid": "cosmos-test-server.local",
            "media": "//media/",
            "addresses": "//addresses/",
            "_dbs": "//dbs/",
            "writableLocations": _build_region_locations(self.write_regions, endpoint),
            "readableLocations": _build_region_locations(self.read_regions, endpoint),
            "enableMultipleWriteLocations": self.multiple_write_locations,
            "enablePerPartitionFailoverBehavior": self.per_partition_failover,
            "continuousBackupEnabled": False,
            "userReplicationPolicy": {"asyncReplication": False, "minReplicaSetSize": 3, "maxReplicasetSize": 4},
            "userConsistencyPolicy": {"defaultConsistencyLevel": str(self.consistency)},
            "systemReplicationPolicy": {"minReplicaSetSize": 3, "maxReplicasetSize": 4},
            "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
            "queryEngineConfiguration": "{}",
        }


def _build_region_locations(region_names: tuple[str, ...], endpoint: str) -> list[dict[str, str]]:
    return [{"name": region, "databaseAccountEndpoint": endpoint} for region in region_names]


class _SignedResource(NamedTuple):
    """Path and type of the resource that a client includes in the signature of a request.

    If the request is about a list of resources, such as all containers of a database, the path is that of their parent.
    """

    path_segments: tuple[str, ...]
    type: str


def authenticate(request: CosmosRequest, master_key: str, options: AccountOptions) -> None:
    """Check the master-key signature or the Entra token of a request.

    Args:
        request: The request to check.
        master_key: The account's master key, in Base64.
        options: The options of the account, which state whether Entra tokens are accepted.

    Raises:
        CosmosError: 401 if the signature is missing or wrong, 403 if the date is too old or Entra tokens are rejected.
    """
    fields = dict(parse_qsl(unquote(request.read_header("authorization")).replace("+", "%2B"), keep_blank_values=True))
    if fields.get("ver") != "1.0" or not fields.get("sig"):
        raise CosmosError(
            401, "Required Header authorization is missing. Ensure a valid Authorization token is passed."
        )
    if fields.get("type") == "aad":
        _check_entra_token_permission(request, options)
        return
    if fields.get("type") != "master":
        raise CosmosError(401, "The authorization token type is not supported.")
    _check_signature_date(request)
    if not any(
        hmac.compare_digest(fields["sig"], compute_signature(request, link, master_key))
        for link in _list_candidate_resource_links(request)
    ):
        raise CosmosError(
            401,
            "The input authorization token can't serve the request. The wrong key is being used or the expected"
            " payload is not built as per the protocol.",
        )


def compute_signature(request: CosmosRequest, resource_link: str, master_key: str) -> str:
    """Compute the signature of a request with the master key.

    See "Access control on Azure Cosmos DB resources" in the REST reference.

    Args:
        request: The request to sign.
        resource_link: The resource path that is part of the signed text, such as `dbs/plant/colls/events`.
        master_key: The account's master key, in Base64.
    """
    resource_type = _parse_signed_resource(request).type
    date, http_date = request.read_header("x-ms-date").lower(), request.read_header("date").lower()
    text = f"{request.method.lower()}\n{resource_type}\n{resource_link}\n{date}\n{http_date}\n"
    digest = hmac.new(base64.b64decode(master_key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def _parse_signed_resource(request: CosmosRequest) -> _SignedResource:
    segments = request.segments
    if len(segments) % 2 == 1:
        return _SignedResource(segments[:-1], segments[-1])
    return _SignedResource(segments, segments[-2] if segments else "")


def _list_candidate_resource_links(request: CosmosRequest) -> list[str]:
    """Return the two resource paths that a client may have signed for a request: with names, or with resource ids."""
    link = _parse_signed_resource(request).path_segments
    # A link of resource ids is signed as its last id in lower case; the path does not show the kind of link.
    return ["/".join(link), link[-1].lower() if link else ""]


def _check_signature_date(request: CosmosRequest) -> None:
    try:
        sent = parsedate_to_datetime(request.read_header("x-ms-date") or request.read_header("date"))
    except ValueError as error:
        raise CosmosError(401, "The date header is missing or is not an RFC 1123 date.") from error
    if abs((datetime.now(UTC) - sent).total_seconds()) > _MAX_SKEW_SECONDS:
        raise CosmosError(403, "The authorization token is not valid at the current time.")


def _check_entra_token_permission(request: CosmosRequest, options: AccountOptions) -> None:
    if options.bearer == "deny" or request.operation in _CONTROL:
        raise CosmosError(
            403,
            "Request blocked by Auth: the principal does not have the required RBAC permissions to perform"
            f" {request.operation}.",
            substatus=5300,
        )
