"""Tests of the conversion of query results to tables."""

import math

from oi import QueryResult

REPLY = {
    "query": "ad-hoc",
    "executedAt": "2026-01-05T08:00:00.000000Z",
    "columns": [
        {"name": "Time", "type": "datetime"},
        {"name": "Value", "type": "real"},
        {"name": "Count", "type": "long"},
        {"name": "Payload", "type": "dynamic"},
        {"name": "Id", "type": "guid"},
    ],
    "results": [
        {"Time": "2026-01-05T08:00:00.000001Z", "Value": 1, "Count": 2**60, "Payload": {"a": [1]}, "Id": "x"},
        {"Time": None, "Value": "NaN", "Count": None, "Payload": None, "Id": None},
    ],
    "governance": {"queryApprovedBy": None, "queryApprovedAt": None},
    "truncated": False,
}


def test_an_arrow_table_of_a_result_has_the_types_of_the_columns() -> None:
    """A table has UTC times, exact integers, dynamic values as JSON text, and null for missing cells."""
    result = QueryResult.from_reply(REPLY)
    assert (len(result), [row["Id"] for row in result]) == (2, ["x", None])
    table = result.to_arrow()
    types = [str(each) for each in table.schema.types]
    assert types == ["timestamp[us, tz=UTC]", "double", "int64", "string", "string"]
    first, second = table.to_pylist()
    assert first["Time"].isoformat() == "2026-01-05T08:00:00.000001+00:00"
    assert (first["Value"], first["Count"], first["Payload"]) == (1.0, 2**60, '{"a": [1]}')
    assert math.isnan(second["Value"])
    assert (second["Time"], second["Count"], second["Payload"], second["Id"]) == (None,) * 4


def test_a_text_in_a_dynamic_column_differs_from_a_number() -> None:
    """An Arrow table has the dynamic text "5" as JSON with quotes, and the dynamic number 5 without."""
    values = ["5", 5, "true", True, "null", None]
    reply = {**REPLY, "columns": [{"name": "v", "type": "dynamic"}], "results": [{"v": each} for each in values]}
    cells = QueryResult.from_reply(reply).to_arrow().column("v").to_pylist()
    assert cells == ['"5"', "5", '"true"', "true", '"null"', None]


def test_a_pandas_data_frame_has_the_cells_of_the_result() -> None:
    """A pandas data frame has the columns and cells of the result, and its times have a time zone."""
    frame = QueryResult.from_reply(REPLY).to_pandas()
    assert list(frame.columns) == ["Time", "Value", "Count", "Payload", "Id"]
    assert str(frame["Time"].dtype) == "datetime64[us, UTC]"


def test_integers_next_to_nulls_keep_their_digits_in_pandas() -> None:
    """A column of integers with nulls stays exact in a pandas data frame; one without nulls has the usual type."""
    columns = [{"name": "long", "type": "long"}, {"name": "int", "type": "int"}, {"name": "full", "type": "long"}]
    rows = [{"long": 2**53 + 1, "int": 7, "full": 1}, {"long": None, "int": None, "full": 2**62 + 1}]
    frame = QueryResult.from_reply({**REPLY, "columns": columns, "results": rows}).to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "Int32", "int64"]
    assert frame["long"].to_list()[0] == 2**53 + 1
    assert frame["long"].isna().to_list() == frame["int"].isna().to_list() == [False, True]
    assert frame["full"].to_list() == [1, 2**62 + 1]
