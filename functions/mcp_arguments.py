"""Descriptions of the arguments of MCP tools: meaning, unit and an example of each.

An argument with the same name has the same meaning in every tool.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from shared.catalog.models import ParameterType, QueryParameter
from shared.mcp_server.capabilities import Schema
from shared.openapi.generated_operations import build_query_parameter_schema
from shared.warm_queries.service import MAX_LIMIT

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "timeRange": "ISO 8601 duration before now, for example PT1H.",
    "from": "First time, RFC 3339 or epoch ms, for example 2026-01-05T08:00:00Z; not with timeRange.",
    "to": "End, exclusive, as from, for example 2026-01-05T09:00:00Z.",
    "limit": "Maximum number of items, for example 50.",
    "cursor": "The `cursor` of the previous result, for the next page, for example YWZ0ZXI6cS0x.",
    "lookup": "Lookup, for example pump-rig.",
    "query": "KQL text, for example Telemetry | where ConnectionLookup == 'pump-rig' | take 10.",
    "parameters": 'Values of the declared parameters by name, for example {"device": "rig-1"}.',
    "connection": "Lookup of a data connection, for example pump-rig. Default: all connections.",
    "surface": "Lookup of a surface, for example cooling: only messages of its connections.",
    "minutes": "Only messages of this many minutes before now, for example 15.",
    "scopeKey": "Scope of the records, for example line-1. Default: the workspace's own records.",
    "recordId": "RecordID of a record whose digest is recomputed too, 12 digits, for example 000000000001.",
    "target": "Container of the chain, for example DomainEvents, the default with a scope.",
    "verdict": "Only chains with this result of the last verification, for example broken.",
    "startDate": "First time, inclusive: ISO 8601, UTC without a zone, for example 2026-01-05T08:00:00Z.",
    "endDate": "Last time, inclusive: ISO 8601, UTC without a zone, for example 2026-01-05T09:00:00Z.",
    "fromSequence": "First sequence number, inclusive, for example 1.",
    "toSequence": "Last sequence number, inclusive, for example 100.",
    "offset": "Number of records to skip, for example 100.",
    "entityId": "Only records about this entity, for example batch-7.",
    "entityType": "Only records about entities of this type, for example Batch.",
    "actionType": "Only records of this action, for example Catalog.WarmQuery.Approved.",
    "userId": "Only records of this principal, for example editor@plant-a.example.",
    "amendedBy": "Only amendments by this principal, for example editor@plant-a.example.",
    "reasonCategory": "Only amendments with this reason, for example data-entry-error.",
    "status": "Only amendments with this status, for example pending.",
    "state": "Only alerts in this state, for example firing.",
    "severity": "Only alerts of this severity, for example critical.",
}
"""Description of each argument, except the declared parameters of queries."""

ROWS: Final = "Maximum number of rows, for example 100."
MESSAGES: Final = "Maximum number of messages, for example 20."

_TIME: Final = {"type": ["string", "integer"]}
QUERY_ARGUMENTS: Final[Mapping[str, Schema]] = {
    "timeRange": {"type": "string", "description": DESCRIPTIONS["timeRange"]},
    "from": {**_TIME, "description": DESCRIPTIONS["from"]},
    "to": {**_TIME, "description": DESCRIPTIONS["to"]},
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": ROWS},
}
"""Arguments of every tool that runs a query."""

_VALUES: Final[Mapping[ParameterType, tuple[str, str]]] = {
    ParameterType.BOOL: ("True or false", "true"),
    ParameterType.INT: ("Whole number of 32 bits", "5"),
    ParameterType.LONG: ("Whole number of 64 bits", "5"),
    ParameterType.REAL: ("Number, in the unit of the query's column", "4.5"),
    ParameterType.DECIMAL: ("Decimal number, in the unit of the query's column", "4.5"),
    ParameterType.STRING: ("Text", "rig-1"),
    ParameterType.DATETIME: ("Time, RFC 3339 in UTC", "2026-01-05T08:00:00Z"),
    ParameterType.TIMESPAN: ("Duration, ISO 8601 or Kusto", "PT15M"),
    ParameterType.GUID: ("UUID", "0f8fad5b-d9cb-469f-a165-70867728950e"),
    ParameterType.DYNAMIC: (
        r"""Any JSON value; a text must contain JSON, so quote plain text twice, as in `"\"rig-1\""`""",
        '["rig-1"]',
    ),
}
"""Meaning and example of the values of each type."""
_JSON_TYPES: Final = ("object", "array", "string", "number", "boolean")
"""Types of a dynamic argument; null means the default."""


def add_argument_descriptions(schema: Mapping[str, Any], **descriptions: str) -> dict[str, Any]:
    """Return a copy of a tool's argument schema in which each argument has a description.

    Args:
        schema: JSON schema of the tool's arguments.
        descriptions: descriptions by name of the argument; they have priority over :data:`DESCRIPTIONS`.

    Raises:
        KeyError: an argument has no description.
    """
    texts = {**DESCRIPTIONS, **descriptions}
    properties = {name: {**argument, "description": texts[name]} for name, argument in schema["properties"].items()}
    return {**schema, "properties": properties}


def build_argument_schema(parameter: QueryParameter) -> dict[str, Any]:
    """Build the JSON schema of a tool argument for a declared parameter of a query."""
    meaning, example = _VALUES[parameter.type]
    description = f"{meaning} (Kusto {parameter.type}), for example {example}."
    schema = build_query_parameter_schema(parameter)
    if parameter.type is ParameterType.DYNAMIC:
        # An argument is a JSON value; only in a query string it is JSON text.
        default = json.loads(schema.get("default", "null"))
        if isinstance(default, str):
            default = schema["default"]  # JSON text, because the tool parses a text
        schema = {"type": list(_JSON_TYPES)} | ({} if default is None else {"default": default})
    return {**schema, "description": description}
