"""Test server for Azure Cosmos DB: serves the REST protocol of the package azure-cosmos, and stores all data in memory.

The implementation follows the REST reference and the source of the SDK; it was never compared with the Azure service or
with Microsoft's emulator. An unsupported request is rejected with a message that names the missing feature.
"""

from emulators.cosmos.account import AccountOptions, Consistency
from emulators.cosmos.faults import FaultInjector, FaultKind, InjectedFault
from emulators.cosmos.request_log import LoggedRequest, RequestLog
from emulators.cosmos.server import CosmosServer
from emulators.cosmos.service import DEFAULT_KEY, CosmosService
from emulators.cosmos.wire import CosmosRequest

__all__ = [
    "DEFAULT_KEY",
    "AccountOptions",
    "Consistency",
    "CosmosRequest",
    "CosmosServer",
    "CosmosService",
    "FaultInjector",
    "FaultKind",
    "InjectedFault",
    "LoggedRequest",
    "RequestLog",
]
