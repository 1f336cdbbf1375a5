"""Addresses of the HTTP API, as the client binding and the answers carry them."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

PREFIX = "/runtime/webhooks/durabletask/"
"""Where the Functions host serves the Durable Task extension."""

_RPC = "rpc/"
_PLACEHOLDER = "INSTANCEID"
_CONNECTION = "Storage"


@dataclass(frozen=True, slots=True)
class ManagementUrls:
    """Makes addresses.

    Attributes:
        origin: scheme, host and port of the local host.
        hub: the task hub.
        key: the system key; whoever has an address that holds it may use it.
    """

    origin: str
    hub: str
    key: str

    def rpc_path(self) -> str:
        """Return the path below which the SDK's client calls; it adds no key of its own, so the path holds it."""
        return f"{PREFIX}{_RPC}{self.key}/"

    def management(self, instance: str, hub: str | None = None) -> dict[str, str]:
        """Return the addresses that an instance is managed by."""
        base = f"{self.origin}{PREFIX}instances/{quote(instance, safe='')}"
        suffix = f"taskHub={quote(hub or self.hub, safe='')}&connection={_CONNECTION}&code={self.key}"
        return {
            "id": instance,
            "statusQueryGetUri": f"{base}?{suffix}",
            "sendEventPostUri": f"{base}/raiseEvent/{{eventName}}?{suffix}",
            "terminatePostUri": f"{base}/terminate?reason={{text}}&{suffix}",
            "rewindPostUri": f"{base}/rewind?reason={{text}}&{suffix}",
            "purgeHistoryDeleteUri": f"{base}?{suffix}",
            "restartPostUri": f"{base}/restart?{suffix}",
            "suspendPostUri": f"{base}/suspend?reason={{text}}&{suffix}",
            "resumePostUri": f"{base}/resume?reason={{text}}&{suffix}",
        }

    def binding(self, hub: str | None = None) -> str:
        """Return what a ``durableClient`` input binding receives, as JSON text."""
        start = f"{self.origin}{PREFIX}orchestrators/{{functionName}}[/{{instanceId}}]"
        document: dict[str, Any] = {
            "taskHubName": hub or self.hub,
            "creationUrls": {
                "createNewInstancePostUri": f"{start}?code={self.key}",
                "createAndWaitOnNewInstancePostUri": (
                    f"{start}?timeout={{timeoutInSeconds}}&pollingInterval={{intervalInSeconds}}&code={self.key}"
                ),
            },
            "managementUrls": self.management(_PLACEHOLDER, hub),
            "baseUrl": self.origin + PREFIX.rstrip("/"),
            "requiredQueryStringParameters": f"code={self.key}",
            "rpcBaseUrl": self.origin + self.rpc_path(),
        }
        return json.dumps(document)
