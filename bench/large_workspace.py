"""Generator of a large workspace document (connections, groups and saved queries), for benchmarks of lists."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_APPROVAL: Final = {"approvedBy": "admin@bench", "approvedAt": "2026-01-05T08:00:00Z"}
_MEMBERS_OF_SURFACE: Final = 50
_KQL: Final = """Telemetry
| where ConnectionLookup == "c-{number}"
| where todouble(Payload.pressure) > minimum
| summarize Mean = avg(todouble(Payload.pressure)), Messages = count() by bin(Timestamp, {minutes}m), DeviceId
| order by Timestamp desc"""


UNLIMITED_WORKSPACE: Final[Mapping[str, Any]] = {
    "workspace": {"id": "bench", "name": "Bench"},
    "tier": "enterprise",
    "limits": {"requestsPerMinute": 100_000_000, "concurrent": 10_000},
    "policies": {"provenance": {}},
    "team": [
        {"id": "admin@bench", "name": "Administrator", "role": "Admin"},
        {"id": "editor@bench", "name": "Engineer", "role": "Editor"},
    ],
}
"""Sections that the workspace documents of benchmarks share; the rate limits are too high to slow down a benchmark."""


def write_workspace_document(file: Path, *, connection_count: int, query_count: int) -> None:
    """Write a workspace document with the given numbers of items.

    Args:
        file: file to write, as JSON, which is also YAML.
        connection_count: number of connections; 50 of them form a surface (group of connections).
        query_count: number of approved saved KQL queries; all texts differ, and each query has one parameter.
    """
    surfaces = -(-connection_count // _MEMBERS_OF_SURFACE)
    document = {
        **UNLIMITED_WORKSPACE,
        "connections": [
            {"lookup": f"c-{number}", "name": f"Connection {number}", "type": "CLOUD_EVENT_HUB"}
            for number in range(connection_count)
        ],
        "surfaces": [
            {
                "lookup": f"s-{number}",
                "name": f"Surface {number}",
                "connections": [f"c-{each}" for each in range(number, connection_count, surfaces)],
            }
            for number in range(surfaces)
        ],
        "warmQueries": [_build_query(number, surfaces) for number in range(query_count)],
    }
    file.write_text(json.dumps(document), encoding="utf-8")


def _build_query(number: int, surface_count: int) -> dict[str, Any]:
    return {
        "lookup": f"q-{number:04d}",
        "name": f"Query {number}",
        "description": f"Mean pressure of connection {number}.",
        "surface": f"s-{number % surface_count}",
        "kql": _KQL.format(number=number, minutes=1 + number % 60),
        "parameters": [{"name": "minimum", "type": "real", "default": 0.5}],
        "approval": _APPROVAL,
    }
