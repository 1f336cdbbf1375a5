"""Tests of the operator ``find`` and of conditions over all columns, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

EVENTS = """let EventsTable1 = datatable(Session_Id:string, Level:string, EventText:string, Version:string)[
'ac', 'Information', 'Some Text1', 'v1.0.0', 'ac', 'Error', 'Some Text2', 'v1.0.0',
'28', 'Error', 'Some Text3', 'v1.0.1', '8f', 'Information', 'Some Text4', 'v1.1.0'];
let EventsTable2 = datatable(Session_Id:string, Level:string, EventText:string, EventName:string)[
'f7', 'Information', 'Some Other Text1', 'Event1', 'ac', 'Information', 'Some Other Text2', 'Event2',
'ac', 'Error', 'Some Other Text3', 'Event3', '15', 'Error', 'Some Other Text4', 'Event4'];
let Partial = view () { EventsTable1 | where Level == 'Error' };
let Mixed = print Session_Id = 5, Level = 'x';
"""
BOTH = "find in (EventsTable1, EventsTable2) where"

CASES: list[tuple[str, list[str], list[list[Any]]]] = [
    (
        f"{BOTH} Session_Id == 'ac' and Level == 'Error' project EventText, Version, EventName, pack_all()",
        ["source_", "EventText", "Version", "EventName", "pack_"],
        [
            ["EventsTable1", "Some Text2", "v1.0.0", "", {"Session_Id": "ac", "Level": "Error"}],
            ["EventsTable2", "Some Other Text3", "", "Event3", {"Session_Id": "ac", "Level": "Error"}],
        ],
    ),
    (
        f"{BOTH} Version == 'v1.0.0' or EventName == 'Event1' project EventName, Session_Id, Version",
        ["source_", "EventName", "Session_Id", "Version"],
        [["EventsTable1", "", "ac", "v1.0.0"]] * 2 + [["EventsTable2", "Event1", "f7", ""]],
    ),
    (
        f"{BOTH} Session_Id == 'ac' | where Level == 'Error'",
        ["source_", "Session_Id", "Level", "EventText", "pack_"],
        [
            ["EventsTable1", "ac", "Error", "Some Text2", {"Version": "v1.0.0"}],
            ["EventsTable2", "ac", "Error", "Some Other Text3", {"EventName": "Event3"}],
        ],
    ),
    (
        f"{BOTH} Version == 'v1.1.0'",
        ["source_", "Session_Id", "Level", "EventText", "Version"],
        [["EventsTable1", "8f", "Information", "Some Text4", "v1.1.0"]],
    ),
    (
        f"{BOTH} * has 'Text1' project pack(*)",
        ["source_", "pack_"],
        [
            [
                "EventsTable1",
                {"Session_Id": "ac", "Level": "Information", "EventText": "Some Text1", "Version": "v1.0.0"},
            ],
            [
                "EventsTable2",
                {"Session_Id": "f7", "Level": "Information", "EventText": "Some Other Text1", "EventName": "Event1"},
            ],
        ],
    ),
    (
        "find withsource=From in (Partial, EventsTable2) where Session_Id == 'ac' and Level == 'Error' project Level",
        ["From", "Level"],
        [["Partial", "Error"], ["EventsTable2", "Error"]],
    ),
    (
        "find in (Mixed, EventsTable2) where Level == 'x' or EventName == 'Event1' project-smart",
        ["source_", "Session_Id_long", "Session_Id_string", "Level", "EventName", "pack_"],
        [
            ["Mixed", 5, "", "x", "", {}],
            ["EventsTable2", None, "f7", "Information", "Event1", {"EventText": "Some Other Text1"}],
        ],
    ),
    (
        "find in (Mixed, EventsTable2) where Level == 'x' project Session_Id:string, Level",
        ["source_", "Session_Id", "Level"],
        [["Mixed", "5", "x"]],
    ),
    ("find in (Dev*) where 'dev-03'", ["source_", "DeviceId", "Model"], [["Devices", "dev-03", "B"]]),
    ("find 'dev-03' | summarize count() by source_", ["source_", "count_"], [["Devices", 1], ["Telemetry", 100]]),
    (
        "let f = (d:string) { find in (Devices) where DeviceId == d }; f('dev-01')",
        ["source_", "DeviceId", "Model"],
        [["Devices", "dev-01", "B"]],
    ),
    ("find in (Devices) where true | summarize count() by source_", ["source_", "count_"], [["Devices", 5]]),
    (
        f"{BOTH} 1 == 1 project EventName | summarize count() by EventName",
        ["EventName", "count_"],
        [["", 4], ["Event1", 1], ["Event2", 1], ["Event3", 1], ["Event4", 1]],
    ),
    ("find in (Devices) where 1 == 2", ["source_", "DeviceId", "Model"], []),
    ("Devices | where * has 'B' and DeviceId endswith '3'", ["DeviceId", "Model"], [["dev-03", "B"]]),
    ("Devices | where not(* startswith 'dev-0')", ["DeviceId", "Model"], []),
]


@pytest.mark.parametrize(("query", "columns", "expected"), CASES)
def test_find_returns_matching_rows_of_all_tables(
    endpoint: Endpoint, query: str, columns: list[str], expected: list[list[Any]]
) -> None:
    """``find`` returns the matching rows of all tables with the documented columns."""
    table = endpoint.query_table(EVENTS + query)
    assert [column.column_name for column in table.columns] == columns
    assert sorted(table.raw_rows, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(
    "query",
    [
        f"{BOTH} nothing == 1",
        f"{BOTH} Level == 'x' project nothing",
        f"{BOTH} Level == 'x' project Level:nothing",
        "find in (secrets) where 'a'",
        "find in (Nothing*) where 'a'",
        "Devices | find 'a'",
        "print a = 1 | evaluate bag_unpack(dynamic({})) | where * has 'a'",
    ],
)
def test_find_with_unknown_names_is_rejected(endpoint: Endpoint, query: str) -> None:
    """``find`` with an unknown column, type or table is rejected."""
    assert endpoint.query_error_code(EVENTS + query).startswith(("General_BadRequest", "BadRequest"))


@pytest.mark.parametrize("parameters", ["foo=1", "foo=1 withsource=src", "withsource=src foo=1"])
def test_find_with_an_unknown_parameter_is_rejected(endpoint: Endpoint, parameters: str) -> None:
    """``find`` with an unknown parameter is rejected, also after ``withsource``; the error names the parameter."""
    error = endpoint.query_error(f"find {parameters} in (Devices) where Model == 'B'")
    assert "'find foo=1' is not supported" in str(error)


def test_find_with_a_repeated_parameter_is_rejected(endpoint: Endpoint) -> None:
    """``find`` with a second ``withsource`` is rejected."""
    error = endpoint.query_error("find withsource=src withsource=other in (Devices) where Model == 'B'")
    assert "'find withsource=other' is not supported" in str(error)
