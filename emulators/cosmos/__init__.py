"""Azure Cosmos DB test server: implements the REST protocol of azure-cosmos over a socket, in memory.

It follows the REST reference and the source of the SDK and was never compared with the service or its official
emulator. It rejects unsupported requests with a message that names the feature.
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
