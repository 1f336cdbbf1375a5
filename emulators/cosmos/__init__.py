"""A test double of Azure Cosmos DB at the wire: what azure-cosmos sends is answered over a socket, from memory.

It is not an emulator and has never been compared with one or with the service; it is written after the REST reference
and after what the SDK's source sends and expects. What it does not implement it refuses, saying so.
"""

from emulators.cosmos.account import AccountOptions, Consistency
from emulators.cosmos.faults import FaultInjector, FaultKind, InjectedFault
from emulators.cosmos.request_log import LoggedRequest, RequestLog
from emulators.cosmos.server import DEFAULT_KEY, CosmosServer
from emulators.cosmos.wire import CosmosRequest

__all__ = [
    "DEFAULT_KEY",
    "AccountOptions",
    "Consistency",
    "CosmosRequest",
    "CosmosServer",
    "FaultInjector",
    "FaultKind",
    "InjectedFault",
    "LoggedRequest",
    "RequestLog",
]
