"""The account's document: regions and consistency, as clients discover them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from emulators.cosmos.wire import CosmosError, CosmosRequest


class Consistency(StrEnum):
    """The consistency levels, by their names on the wire."""

    STRONG = "Strong"
    BOUNDED_STALENESS = "BoundedStaleness"
    SESSION = "Session"
    CONSISTENT_PREFIX = "ConsistentPrefix"
    EVENTUAL = "Eventual"


_STRONGEST_FIRST = list(Consistency)


@dataclass(frozen=True)
class AccountOptions:
    """What kind of account the server shows.

    Attributes:
        consistency: The default consistency level. Reads are strong whatever it says.
        write_regions: The regions that take writes; every one leads back to this server.
        read_regions: The regions that are read; every one leads back to this server.
        multiple_write_locations: Whether the account says that it is written in several regions.
        bearer: What becomes of Entra tokens: taken for data, or refused with 403/5300.
    """

    consistency: Consistency = Consistency.BOUNDED_STALENESS
    write_regions: tuple[str, ...] = ("West Europe",)
    read_regions: tuple[str, ...] = ("West Europe",)
    multiple_write_locations: bool = False
    bearer: Literal["accept", "deny"] = "accept"

    def check_consistency(self, request: CosmosRequest) -> None:
        """Refuses a request that asks for more than the account gives.

        Raises:
            Refusal: 400, the level is stronger than the account's, or unknown.
        """
        asked = request.header("x-ms-consistency-level")
        if not asked:
            return
        if asked not in _STRONGEST_FIRST:
            raise CosmosError(400, f"'{asked}' is not a valid consistency level.")
        if _STRONGEST_FIRST.index(Consistency(asked)) < _STRONGEST_FIRST.index(self.consistency):
            raise CosmosError(
                400,
                f"ConsistencyLevel {asked} specified in the request is invalid when service is configured"
                f" with consistency level {self.consistency}.",
            )

    def document(self, endpoint: str) -> dict[str, Any]:
        """Gives the account as `GET /` answers it.

        Args:
            endpoint: The server's own address; every region has it.
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
