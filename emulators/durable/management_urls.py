"""URLs of the management API with their system key, as client bindings and replies contain them."""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

PREFIX = "/runtime/webhooks/durabletask/"
"""Path of the Durable Task extension on the Functions host."""

_RPC = "rpc/"
_PLACEHOLDER = "INSTANCEID"
_CONNECTION = "Storage"


@dataclass(frozen=True, slots=True)
class ManagementUrls:
    """Builder of management URLs.

    Attributes:
        origin: scheme, host and port of the local host.
        hub: the task hub.
        key: the system key; a URL that contains it grants access.
    """

    origin: str
    hub: str
    key: str

    def rpc_path(self) -> str:
        """Return the base path for the SDK's client, with the key in it because the client adds none."""
        return f"{PREFIX}{_RPC}{self.key}/"

    def management(self, instance: str, hub: str | None = None) -> dict[str, str]:
        """Return the management URLs of an instance."""
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
        """Return the value of a ``durableClient`` input binding, as JSON text."""
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


def load_system_key(path: Path) -> str:
    """Return the key in a file that only its owner can read; a missing file is created."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        stored = path.read_text(encoding="ascii").strip()
        if stored:
            return stored
        # A start that was interrupted can have created an empty file.
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC, 0o600)
    key = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key
