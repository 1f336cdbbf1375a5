"""Query replies as JSON frames (parts of a reply), as in version 2 of the Kusto REST API.

See "Query V2 HTTP response" of the Data Explorer documentation. Each table is one frame: tables are neither split nor
sent progressively. Values have the format of Data Explorer: datetimes and timespans are strings, dynamic values are
JSON, and NaN and infinity are strings with their names.
"""

import json
import math
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import orjson
from duckdb_kql.types import kusto_type

from emulators.kusto.decimals import format_decimal
from emulators.kusto.errors import QueryError
from emulators.kusto.extensions.rendering import EMPTY
from emulators.kusto.timespans import format_timespan

_HEADER = {
    "FrameType": "DataSetHeader",
    "IsProgressive": False,
    "Version": "v2.0",
    "IsFragmented": False,
    "ErrorReportingPlacement": "InData",
}
_PROPERTIES = {
    "FrameType": "DataTable",
    "TableId": 0,
    "TableKind": "QueryProperties",
    "TableName": "@ExtendedProperties",
    "Columns": [
        {"ColumnName": "TableId", "ColumnType": "int"},
        {"ColumnName": "Key", "ColumnType": "string"},
        {"ColumnName": "Value", "ColumnType": "dynamic"},
    ],
    "Rows": [],
}
_COMPLETION_COLUMNS = [
    {"ColumnName": name, "ColumnType": kind}
    for name, kind in (
        ("Timestamp", "datetime"),
        ("ClientRequestId", "string"),
        ("ActivityId", "guid"),
        ("SubActivityId", "guid"),
        ("ParentActivityId", "guid"),
        ("Level", "int"),
        ("LevelName", "string"),
        ("StatusCode", "int"),
        ("StatusCodeName", "string"),
        ("EventType", "int"),
        ("EventTypeName", "string"),
        ("Payload", "string"),
    )
]
_ROW_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z
_LONG = range(-(2**63), 2**63)


type ColumnNameAndType = tuple[str, str]
"""Name and Kusto type of a result's column."""


@dataclass(frozen=True, slots=True)
class ResultOrigin:
    """Request for which a cached query result was computed.

    Attributes:
        request_id: client request id of that request.
        started_at: time at which that request started, in UTC.
    """

    request_id: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class KqlResult:
    """Result of a KQL query.

    Attributes:
        columns: name and Kusto type of each column, in order.
        rows: the rows as JSON arrays, separated by commas, without enclosing brackets.
        seconds: time of the query in the engine. It includes the translation to SQL and the discovery queries, which
            find output columns before the query itself runs.
        visualization: chart properties from the operator ``render``; None if the query has no such operator.
        name: name of the result's table; empty for the default name.
        further: the other results of a query with several results.
        approximations: functions whose results can differ from Data Explorer's, each with a note such as
            ``(approximate order)``.
    """

    columns: tuple[ColumnNameAndType, ...]
    rows: bytes
    seconds: float
    visualization: Mapping[str, Any] | None = None
    name: str = ""
    further: "tuple[KqlResult, ...]" = ()
    approximations: tuple[str, ...] = ()


def columns_from_cursor_description(description: Iterable[Sequence[Any]]) -> tuple[ColumnNameAndType, ...]:
    """Return the columns of a query from the attribute ``description`` of a database cursor."""
    return tuple((str(entry[0]), kusto_type(entry[1])) for entry in description)


def encode_rows(
    columns: Sequence[ColumnNameAndType], rows: Iterable[Sequence[Any]], *, extend_ends_of_periods: bool = False
) -> bytes:
    """Encode rows as JSON arrays that are separated by commas, without enclosing brackets.

    Args:
        columns: name and Kusto type of each column.
        rows: the rows.
        extend_ends_of_periods: True to encode the last microsecond of a day as the last tick (100 ns) of the day,
            which DuckDB cannot store.

    Raises:
        OverflowError: a value cannot be represented, such as an integer of more than 64 bits.
    """
    # Cells are encoded column by column, because a call for each cell would take most of a query's time.
    values = zip(*rows, strict=True)
    encoders = _PERIOD_ENCODERS if extend_ends_of_periods else _COLUMN_ENCODERS
    encoded = [encoders.get(kind, list)(cells) for (_, kind), cells in zip(columns, values, strict=False)]
    wire = list(zip(*encoded, strict=True))
    try:
        return orjson.dumps(wire, default=_encode_non_json_value, option=_ROW_OPTIONS)[1:-1]
    except TypeError as error:
        raise OverflowError(f"a value cannot be represented in JSON: {error}") from error


def render_data_set(result: KqlResult, request_id: str, origin: ResultOrigin | None = None) -> bytes:
    """Render a query result as JSON frames.

    If the result comes from the cache, ``origin`` is the request that computed it.
    """
    results = (result, *result.further)
    primary = b",".join(
        _render_primary_table(each.columns, each.rows, index, each.name) for index, each in enumerate(results, start=1)
    )
    seconds = sum(each.seconds for each in results) if origin is None else 0.0
    last = {"HasErrors": False, "Cancelled": False}
    properties = _render_query_properties(
        [each.visualization or EMPTY for each in results], origin, result.approximations
    )
    return _render_frames(primary, _render_completion_table(request_id, seconds, len(results) + 1), last, properties)


def render_failed_data_set(error: QueryError, request_id: str) -> bytes:
    """Render the frames for a query that failed during execution; they contain the error instead of rows."""
    document = error.to_document()
    reported = orjson.dumps({"OneApiErrors": [document]})
    completion = {"HasErrors": True, "Cancelled": False, "OneApiErrors": [document]}
    properties = _render_query_properties([EMPTY], None)
    return _render_frames(
        _render_primary_table((), reported), _render_completion_table(request_id, 0.0), completion, properties
    )


def render_error_document(error: QueryError, request_id: str) -> bytes:
    """Render the error document for a rejected request, or for a query that was not executed."""
    document = error.to_document()
    document["error"]["@context"] = {
        "timestamp": _encode_instant(datetime.now(UTC)),
        "serviceAlias": "embedded",
        "clientRequestId": request_id,
    }
    return orjson.dumps(document)


def _render_query_properties(
    visualizations: Sequence[Mapping[str, Any]], origin: ResultOrigin | None, approximations: Sequence[str] = ()
) -> Mapping[str, Any]:
    rows = [
        [index, "Visualization", orjson.dumps(visualization).decode()]
        for index, visualization in enumerate(visualizations, start=1)
    ]
    if origin is not None:
        value = {"OriginalClientRequestId": origin.request_id, "OriginalStartedOn": _encode_instant(origin.started_at)}
        rows.append([1, "ServerCache", orjson.dumps(value).decode()])
    if approximations:
        rows.append([1, "Approximations", orjson.dumps(approximations).decode()])
    return {**_PROPERTIES, "Rows": rows}


def _render_frames(
    primary_tables: bytes,
    completion_table: Mapping[str, Any],
    data_set_completion: Mapping[str, Any],
    properties_table: Mapping[str, Any],
) -> bytes:
    frames = (
        orjson.dumps(_HEADER),
        orjson.dumps(properties_table),
        primary_tables,
        orjson.dumps(completion_table),
        orjson.dumps({"FrameType": "DataSetCompletion", **data_set_completion}),
    )
    return b"[" + b",".join(frames) + b"]"


def _render_primary_table(
    columns: Sequence[ColumnNameAndType], rows_json: bytes, table_id: int = 1, name: str = ""
) -> bytes:
    head = orjson.dumps(
        {
            "FrameType": "DataTable",
            "TableId": table_id,
            "TableKind": "PrimaryResult",
            "TableName": name or "PrimaryResult",
            "Columns": [{"ColumnName": column, "ColumnType": kind} for column, kind in columns],
        }
    )
    return head[:-1] + b',"Rows":[' + rows_json + b"]}"


def _render_completion_table(request_id: str, execution_seconds: float, table_id: int = 2) -> dict[str, Any]:
    common = [_encode_instant(datetime.now(UTC)), request_id, *[str(uuid.uuid4())] * 3]
    done = orjson.dumps({"Count": 1, "Text": "Query completed successfully"}).decode()
    used = orjson.dumps({"ExecutionTime": execution_seconds}).decode()
    return {
        "FrameType": "DataTable",
        "TableId": table_id,
        "TableKind": "QueryCompletionInformation",
        "TableName": "QueryCompletionInformation",
        "Columns": _COMPLETION_COLUMNS,
        "Rows": [
            [*common, 4, "Info", 0, "S_OK (0)", 4, "QueryInfo", done],
            [*common, 6, "Stats", 0, "S_OK (0)", 0, "QueryResourceConsumption", used],
        ],
    }


def _encode_instant(value: Any) -> str | None:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00Z"
    if value is None:
        return None
    raise OverflowError("a datetime is outside the years 1 to 9999")  # DuckDB returns these as strings


def _encode_timespan(value: Any) -> Any:
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return format_timespan(value) if isinstance(value, timedelta) else value


def _encode_dynamic(value: Any) -> Any:
    """Embed JSON text unchanged, so that numbers keep all their digits; encode other text as a JSON string."""
    if not isinstance(value, str):
        return value
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        is_number_or_container = value.startswith(("[", "{")) or value.removeprefix("-").isdecimal()
        return _parse_extreme_numbers(value) if is_number_or_container else value
    return orjson.Fragment(value)


def _parse_extreme_numbers(json_text: str) -> Any:
    """Parse JSON text with numbers that orjson rejects: NaN, infinity, and integers beyond the range of a double.

    NaN, infinity and reals beyond the range of a double become their names. Integers with more than 4,300 digits become
    texts, because clients in Python cannot parse them. All other numbers keep their digits. Other text is returned
    unchanged.
    """
    try:
        return json.loads(json_text, parse_constant=str, parse_int=_parse_integer, parse_float=_parse_real)
    except (ValueError, RecursionError):
        return json_text


def _parse_integer(digits: str) -> str | orjson.Fragment:
    """Parse a JSON integer: return its digits to be embedded unchanged, or as text if they are too many."""
    return orjson.Fragment(digits) if len(digits.lstrip("-")) <= sys.int_info.default_max_str_digits else digits


def _parse_real(text: str) -> str | orjson.Fragment:
    """Parse a JSON real: return its text to be embedded unchanged, or the name of infinity beyond a double's range."""
    number = float(text)
    return orjson.Fragment(text) if math.isfinite(number) else _encode_nonfinite_real(number)


def _encode_nonfinite_real(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _encode_as_text_or_null(value: Any) -> str | None:
    return None if value is None else str(value)


def _encode_decimal(value: Any) -> str | None:
    return format_decimal(value) if isinstance(value, Decimal) else _encode_as_text_or_null(value)


def _encode_non_json_value(value: Any) -> Any:
    if isinstance(value, timedelta):
        return format_timespan(value)
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, Decimal):
        return orjson.Fragment(format_decimal(value))
    if isinstance(value, int):
        return orjson.Fragment(str(value))
    return str(value)


def _build_column_encoder(encode: Callable[[Any], Any]) -> Callable[[Iterable[Any]], list[Any]]:
    return lambda cells: [encode(cell) for cell in cells]


def _encode_instants(cells: Iterable[Any]) -> list[Any]:
    return [
        f"{cell.isoformat(timespec='microseconds')}Z"
        if type(cell) is datetime and cell.tzinfo is None
        else _encode_instant(cell)
        for cell in cells
    ]


def _encode_instants_with_period_ends(cells: Iterable[Any]) -> list[Any]:
    """Encode datetimes as text; the last microsecond of a day becomes the last tick (100 ns) of the day."""
    return [
        f"{text.removesuffix('Z')}9Z" if text is not None and text.endswith("T23:59:59.999999Z") else text
        for text in _encode_instants(cells)
    ]


def _encode_reals(cells: Iterable[Any]) -> list[Any]:
    return [cell if cell is None or math.isfinite(cell) else _encode_nonfinite_real(cell) for cell in cells]


def _encode_strings(cells: Iterable[Any]) -> list[Any]:
    """Replace nulls by empty strings, because strings in Kusto are never null."""
    return ["" if cell is None else cell for cell in cells]


def _encode_longs(cells: Iterable[Any]) -> list[Any]:
    encoded = list(cells)
    if all(cell is None or cell in _LONG for cell in encoded):
        return encoded
    raise OverflowError("an integer is outside the range of 64 bits")


_COLUMN_ENCODERS: Mapping[str, Callable[[Iterable[Any]], list[Any]]] = {
    "datetime": _encode_instants,
    "timespan": _build_column_encoder(_encode_timespan),
    "dynamic": _build_column_encoder(_encode_dynamic),
    "real": _encode_reals,
    "string": _encode_strings,
    "decimal": _build_column_encoder(_encode_decimal),
    "guid": _build_column_encoder(_encode_as_text_or_null),
    "long": _encode_longs,
}
_PERIOD_ENCODERS = {**_COLUMN_ENCODERS, "datetime": _encode_instants_with_period_ends}
