"""Account document: regions and consistency for client discovery."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from emulators.cosmos.wire import CosmosError, CosmosRequest


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
