"""A test double of Azure Cosmos DB at the wire: what azure-cosmos sends is answered over a socket, from memory.

It is not an emulator and has never been compared with one or with the service; it is written after the REST reference
and after what the SDK's source sends and expects. What it does not implement it refuses, saying so.
"""

from tests.cosmos_server.account import AccountOptions, Consistency
from tests.cosmos_server.faults import Fault, FaultKind, Faults
from tests.cosmos_server.request_log import Exchange, RequestLog
from tests.cosmos_server.server import DEFAULT_KEY, CosmosServer
from tests.cosmos_server.wire import Request

__all__ = [
    "DEFAULT_KEY",
    "AccountOptions",
    "Consistency",
    "CosmosServer",
    "Exchange",
    "Fault",
    "FaultKind",
    "Faults",
    "Request",
    "RequestLog",
]
