"""Tests of shortening the JSON schemas of MCP tools."""

from shared.mcp_server.compact_schemas import compact_input, compact_output


def test_arguments_keep_their_rules_and_descriptions() -> None:
    """Schemas of arguments omit titles, patterns and lengths, but not properties that have these names."""
    schema = {
        "type": "object",
        "description": "Model.",
        "properties": {
            "title": {"type": "string", "title": "Title", "pattern": "^a$", "description": "d", "default": "title"},
            "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "title": "When"},
            "n": {"type": "integer", "minimum": 1, "examples": [1]},
        },
        "required": [],
        "additionalProperties": False,
    }
    assert compact_input(schema) == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "d", "default": "title"},
            "when": {"type": ["string", "null"]},
            "n": {"type": "integer", "minimum": 1},
        },
        "additionalProperties": False,
    }


def test_results_keep_the_types_of_their_members() -> None:
    """In schemas of results, a reference to a named type becomes the JSON type, unless the type has rules."""
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
            "mode": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "null"}]},
            "any": {"$ref": "#/$defs/Any"},
            "same": {"anyOf": [{"$ref": "#/$defs/Row"}, {"type": "object"}]},
            "one": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "format": "int64"}]},
        },
        "required": ["rows"],
        "$defs": {"Row": {"type": "object", "properties": {}}, "Mode": {"type": "string", "enum": ["x"]}, "Any": {}},
    }
    assert compact_output(schema) == {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object"}},
            "mode": {"type": ["string", "null"]},
            "any": {},
            "same": {"type": "object"},
            "one": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer"}]},
        },
    }
