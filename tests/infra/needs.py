"""Settings, roles and other parts of a deployment that the code needs, as read from the source of the code."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulators.kusto.ingest import GROUP as TABLE_GROUP
from emulators.kusto.schema import COLUMNS, TABLE
from functions import BLUEPRINTS
from functions.live_stream import CONNECT, CONNECTED, DISCONNECTED, ROUTE
from scripts.cosmos_containers import build_container_definitions
from shared.backends.azure.checkpoint_blobs import NOTES, STATES
from shared.live_stream.service import MOVED_HEADER
from shared.observability.metrics import INSTRUMENTS
from shared.settings import Settings
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB
from shared.wiring.cold_data import COLD
from shared.wiring.downloads import DOWNLOADS

ROOT = Path(__file__).parents[2]
_PLACEHOLDER = re.compile(r"%(\w+)%")

NOT_DEPLOYED: Mapping[str, str] = {
    "DATA_DIR": "embedded stores alone",
    "OWN_PORTS": "set by the local host",
    "FILES_URL": "embedded stores alone",
    "TELEMETRY_RETENTION_DAYS": "embedded stores alone",
    "HUB_RETENTION_HOURS": "embedded stores alone",
    "DISK_RESERVE_MB": "embedded stores alone",
    "WEB_PUBSUB_ACCESS_KEY": "the app signs in with its identity",
    "WEBSITE_HOSTNAME": "the platform sets it",
    "TOKEN_AUDIENCE": "its default is right",
    "REFRESH_SECONDS": "its default is right",
    "ENTRA_AUTHORITY": "its default is right; a sovereign cloud has its own",
    "QUERY_TIMEOUT_SECONDS": "its default is right",
    "MAX_AT_WORK": "its default is right",
    "COMPACTION_QUIET_MINUTES": "its default is right",
    "DOWNLOAD_HOURS": "its default is right",
    "DATA_STORE_DNS_SUFFIX": "its default is right; a sovereign cloud has its own",
}
"""Settings that a deployment leaves out, and why."""

ROLES: Mapping[str, set[tuple[str, str, str]]] = {
    "blobs": {
        ("account", "", "Storage Blob Delegator"),
        ("container", COLD, "Storage Blob Data Contributor"),
        ("container", DOWNLOADS, "Storage Blob Data Contributor"),
        ("container", NOTES, "Storage Blob Data Contributor"),
        ("container", STATES, "Storage Blob Data Contributor"),
    },
    "event_hubs": {
        ("eventHub", TELEMETRY_HUB, "Azure Event Hubs Data Sender"),
        ("eventHub", IMPULSES_HUB, "Azure Event Hubs Data Sender"),
    },
    "monitor": {("insights", "", "Monitoring Metrics Publisher")},
    "key_vault": {("vault", "", "Key Vault Crypto User")},
    "web_pubsub": {("webPubSub", "", "Web PubSub Service Owner")},
    # These services have their own roles: see the modules cosmos and data-explorer.
    "cosmos_account": set(),
    # Data stores are external accounts; docs/reference/data-stores.md lists their roles.
    "cosmos_data_accounts": set(),
    "kusto": set(),
}
"""The roles that each adapter needs that signs in with the app's identity: kind of resource, part of it, role."""

TRIGGER_ROLE = "Azure Event Hubs Data Receiver"
HOST_ROLES = {
    ("account", "", "Storage Blob Data Owner"),
    ("account", "", "Storage Queue Data Contributor"),
    ("account", "", "Storage Table Data Contributor"),
    ("insights", "", "Monitoring Metrics Publisher"),
    ("vault", "", "Key Vault Secrets User"),
}
"""What the Functions host needs for itself, Durable Functions and settings that refer to the vault among it."""


@dataclass(frozen=True)
class Needs:
    """Parts that the code needs from a deployment.

    Attributes:
        settings: names of settings that must be deployed.
        placeholders: names of settings that the host puts into bindings.
        connections: prefixes of settings that bindings name.
        readers: event hub and consumer group of each reader.
        hubs: the hubs that receive messages from the app.
        blobs: containers of blobs.
        cosmos: containers of items, in the form of Resource Manager.
        roles: for each needed role, the kind of resource, its part, and the name of the role.
        columns: columns of the query table.
        table: name of the query table.
        live_hub: the message service's hub.
        live_events: address of the message service's event handler.
        live_system_events: events that the event handler handles.
        live_stream: address of the live stream.
        moved_header: the gateway's copy of the header Authorization.
        messages: log messages of the code.
        metrics: metrics of the code.
    """

    settings: frozenset[str]
    placeholders: frozenset[str]
    connections: frozenset[str]
    readers: frozenset[tuple[str, str]]
    hubs: frozenset[str]
    blobs: frozenset[str]
    cosmos: tuple[dict[str, Any], ...]
    roles: frozenset[tuple[str, str, str]]
    columns: tuple[str, ...]
    table: str
    live_hub: str
    live_events: str
    live_system_events: frozenset[str]
    live_stream: str
    moved_header: str
    messages: frozenset[str]
    metrics: frozenset[str]


def find_needs_of_code() -> Needs:
    """Return the parts that the code needs from a deployment, such as settings, triggers and roles."""
    bindings = list(_iterate_trigger_and_output_bindings())
    triggers = {(each["eventHubName"], each["consumerGroup"]) for each in bindings if "eventHubName" in each}
    received = {("eventHub", hub, TRIGGER_ROLE) for hub, _ in triggers}
    roles: set[tuple[str, str, str]] = HOST_ROLES | received
    roles.update(*ROLES.values())
    return Needs(
        settings=frozenset(str(field.alias) for field in Settings.model_fields.values()) - NOT_DEPLOYED.keys(),
        placeholders=frozenset(_PLACEHOLDER.findall(str(bindings))),
        connections=frozenset(each["connection"] for each in bindings if each.get("connection")),
        readers=frozenset(triggers | {(IMPULSES_HUB, TABLE_GROUP)}),
        hubs=frozenset({TELEMETRY_HUB, IMPULSES_HUB}),
        blobs=frozenset({COLD, DOWNLOADS, NOTES, STATES}),
        cosmos=tuple(build_container_definitions()),
        roles=frozenset(roles),
        columns=COLUMNS,
        table=TABLE,
        live_hub=str(Settings.model_fields["web_pubsub_hub"].default),
        live_events=f"{ROUTE}/events",
        live_system_events=frozenset({CONNECT, CONNECTED, DISCONNECTED}),
        live_stream=ROUTE,
        moved_header=MOVED_HEADER,
        messages=frozenset(_iterate_log_messages()),
        metrics=frozenset(INSTRUMENTS),
    )


def find_adapters_with_managed_identity() -> set[str]:
    """Return the adapters that sign in with the managed identity of the app."""
    folder = ROOT / "shared" / "backends" / "azure"
    found = {path.stem for path in folder.glob("*.py") if "azure.identity" in path.read_text(encoding="utf-8")}
    return found - {"identity"}


def _iterate_trigger_and_output_bindings() -> Iterator[dict[str, Any]]:
    for blueprint in BLUEPRINTS:
        for builder in blueprint._function_builders:
            yield from (binding.get_dict_repr() for binding in builder._function.get_bindings())


def _iterate_log_messages() -> Iterator[str]:
    for path in [*ROOT.glob("shared/**/*.py"), *ROOT.glob("functions/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                values = [each.value for each in node.args if isinstance(each, ast.Constant)]
                yield from (value for value in values if isinstance(value, str))
