"""Tests of the rules for mappings of imported files."""

from typing import Any

import pytest

from shared.catalog.models import TimestampFormat
from shared.downloads.import_request import ImportFormat
from shared.errors import ValidationErrors, WorkspaceError
from shared.imports.mapping_rules import check_column_mapping

VALID: dict[str, Any] = {"timestamp": "t", "timestamp_format": TimestampFormat.RFC3339}


def list_invalid_fields(file_format: ImportFormat = ImportFormat.CSV, **mapping: Any) -> list[str]:
    """Return the fields of a mapping that break a rule."""
    faults = ValidationErrors()
    check_column_mapping(file_format, {**VALID, **mapping}, faults)
    try:
        faults.raise_all()
    except WorkspaceError as error:
        errors: Any = error.members["errors"]
        return [each["field"] for each in errors]
    return []


@pytest.mark.parametrize(
    ("mapping", "field"),
    [
        ({"device": "t"}, "mapping.device"),
        ({"message_id": "t"}, "mapping.messageId"),
        ({"columns": ["a", "a"]}, "mapping.columns"),
        ({"delimiter": '"'}, "mapping.delimiter"),
        ({"delimiter": "a"}, "mapping.delimiter"),
        ({"delimiter": ",", "decimal": ","}, "mapping.delimiter"),
        ({"decimal": ","}, "mapping.delimiter"),
        ({"time_zone": "Europe/Nowhere"}, "mapping.timeZone"),
        ({"time_zone": "../etc/passwd"}, "mapping.timeZone"),
        ({"time_zone": "UTC", "timestamp_format": TimestampFormat.EPOCH_SECONDS}, "mapping.timeZone"),
    ],
)
def test_contradictory_mapping_fields_are_listed(mapping: dict[str, Any], field: str) -> None:
    """The error lists each field of a mapping that contradicts another field or has an unknown value."""
    assert list_invalid_fields(**mapping) == [field]


def test_csv_options_require_the_format_csv() -> None:
    """A delimiter or decimal mark is rejected for other formats than CSV."""
    errors = list_invalid_fields(ImportFormat.PARQUET, delimiter=";", decimal=",")
    assert errors == ["mapping.delimiter", "mapping.decimal"]
    assert list_invalid_fields(delimiter=";", decimal=",", device="d", time_zone="Europe/Berlin", columns=["a"]) == []
