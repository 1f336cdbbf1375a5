"""URLs of the Durable Task API, including its system key, for client bindings and replies."""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from emulators.durable.records import JsonText

PREFIX = "/runtime/webhooks/durabletask/"
"""Path of the Durable Task extension on the Functions host."""

_RPC = "rpc/"
_PLACEHOLDER = "INSTANCEID"
_CONNECTION = "Storage"


@dataclass(frozen=True, slots=True)
class ManagementUrls:
    """Builder of the URLs at which clients manage orchestrations.

    Attributes:
        origin: scheme, host name and port of the local Functions host.
        hub: name of the default task hub.
        key: system key of the Durable Task API; every URL that contains the key grants access.
    """

    origin: str
    hub: str
    key: str

    def build_rpc_path(self) -> str:
        """Return the base path that the SDK's client uses.

        It contains the system key, because the client sends no key itself.
        """
        return f"{PREFIX}{_RPC}{self.key}/"

    def build_management_urls(self, instance_id: str, hub: str | None = None) -> dict[str, str]:
        """Return the URLs at which clients manage an orchestration instance, by the names that the SDK uses."""
        base = f"{self.origin}{PREFIX}instances/{quote(instance_id, safe='')}"
        suffix = f"taskHub={quote(hub or self.hub, safe='')}&connection={_CONNECTION}&code={self.key}"
        return {
            "id": instance_id,
            "statusQueryGetUri": f"{base}?{suffix}",
            "sendEventPostUri": f"{base}/raiseEvent/{{eventName}}?{suffix}",
            "terminatePostUri": f"{base}/terminate?reason={{text}}&{suffix}",
            "rewindPostUri": f"{base}/rewind?reason={{text}}&{suffix}",
            "purgeHistoryDeleteUri": f"{base}?{suffix}",
            "restartPostUri": f"{base}/restart?{suffix}",
            "suspendPostUri": f"{base}/suspend?reason={{text}}&{suffix}",
            "resumePostUri": f"{base}/resume?reason={{text}}&{suffix}",
        }

    def build_client_binding_json(self, hub: str | None = None) -> JsonText:
        """Return the JSON text that a function receives for a ``durableClient`` binding."""
        start = f"{self.origin}{PREFIX}orchestrators/{{functionName}}[/{{instanceId}}]"
        document: dict[str, Any] = {
            "taskHubName": hub or self.hub,
            "creationUrls": {
                "createNewInstancePostUri": f"{start}?code={self.key}",
                "createAndWaitOnNewInstancePostUri": (
                    f"{start}?timeout={{timeoutInSeconds}}&pollingInterval={{intervalInSeconds}}&code={self.key}"
                ),
            },
            "managementUrls": self.build_management_urls(_PLACEHOLDER, hub),
            "baseUrl": self.origin + PREFIX.rstrip("/"),
            "requiredQueryStringParameters": f"code={self.key}",
            "rpcBaseUrl": self.origin + self.build_rpc_path(),
        }
        return json.dumps(document)


def load_or_create_system_key(path: Path) -> str:
    """Read the system key of the Durable Task API from a file; create the file with a random key if it is missing."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        stored = path.read_text(encoding="ascii").strip()
        if stored:
            return stored
        # An interrupted start may have left an empty file.
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC, 0o600)
    key = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key
