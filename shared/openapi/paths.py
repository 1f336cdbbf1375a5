"""Paths of OpenAPI and their parameters, built from the routes of operations."""

import re
from typing import Final

from shared.http.operations import Operation
from shared.openapi.schemas import Schema

LONGEST_PARAMETER: Final = 65_536
"""Maximum characters of a parameter; most hosts limit request lines to fewer."""
PLACEHOLDER: Final = re.compile(r"\{\*?([^{}]+)\}")


def build_path_template(operation: Operation) -> str:
    """Build the OpenAPI path template of an operation from its route."""
    return "/" + PLACEHOLDER.sub(r"{\1}", operation.route)


def to_camel_case(name: str) -> str:
    """Convert the snake_case name of a function to the camelCase form of an operationId."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def build_path_parameters(operation: Operation) -> list[Schema]:
    """Build the path parameters of an operation."""
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": description,
            "example": example,
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_PARAMETER,
                **operation.docs.path.get(name, {}),
            },
        }
        for name in PLACEHOLDER.findall(operation.route)
        for description, example in [_describe_path_parameter(operation.route.split("/")[1], name)]
    ]


def _describe_path_parameter(group: str, name: str) -> tuple[str, str]:
    """Return the description and the example of a path parameter.

    Args:
        group: second segment of the route, such as ``telemetry``.
        name: name of the parameter.
    """
    if (group, name) == ("team", "id"):
        return "Id of the member, percent-encoded.", "auditor@plant-a.example"
    if (group, name) == ("webhooks", "id"):
        return "Id of the webhook.", "3b1f8e0c7a5d4e2f9c6b8a7d5e4f3c2b"
    if (group, name) == ("alerts", "id"):
        return "Id of the alert.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"
    description, example = _PATH_PARAMETERS[name]
    return description, _LOOKUPS[group] if name == "lookup" else example


_PATH_PARAMETERS = {
    "lookup": ("Lookup key; for the execution of a warm query also its API path.", ""),
    "queryId": ("Lookup key of the warm query.", "pressure-5m"),
    "workspaceId": ("Id of the workspace.", "plant-a"),
    "surfaceLookup": ("Lookup key of the surface.", "cooling"),
    "connLookup": ("Lookup key of a data connection of the surface.", "pump-rig"),
    "downloadId": ("Id of the download.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"),
    "deliveryId": ("Id of the delivery, the header `webhook-id`.", "msg_b2nq5tcyvxk4wdz7g3mhpf6rsajue2lo"),
    "importId": ("Id of the import.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"),
    "bundleId": ("Id of the audit bundle.", "5f0c7a1e9b3d4f6a8c2e1d0b7a695847"),
    "documentId": ("Id of the document.", "wo-1"),
    "id": ("RecordID of the amendment.", "000000000001"),
    "grantId": ("Id of the grant.", "0197a0b1c2d37e4f8a9b0c1d2e3f4a5b"),
    "jti": ("Id of the token, its claim `jti`.", "0af7651916cd43dd8448eb211c80319c"),
    "keyId": ("Id of the API key, the part between its underscores.", "k7w2m4qa"),
    "containerName": ("Name of the container.", "workorders"),
    "store": ("Lookup key of the document store.", "mes"),
    "database": ("Lookup key of the database.", "orders"),
    "table": ("Name of the table.", "workorders"),
    "file": ("Name of the file.", "index.html"),
}


_LOOKUPS = {
    "warm-queries": "pressure-5m",
    "telemetry": "pump-rig",
    "downloads": "pump-rig",
    "imports": "pump-rig",
    "data-stores": "orders",
    "connections": "pump-rig",
    "surfaces": "cooling",
    "alert-rules": "pressure-high",
}
"""Examples of ids in URLs (lookups), by the second segment of a route."""
