"""Answers on the wire: the frames of the Kusto REST API, version 2.

See "Query V2 HTTP response" of the Data Explorer documentation. Frames are not fragmented and not progressive; values
stand as Data Explorer writes them: instants and timespans as text, dynamics as JSON values, non-finite reals by name.
"""

import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import orjson
from duckdb_kql.types import kusto_type

from emulators.kusto.decimals import decimal_text
from emulators.kusto.errors import QueryError
from emulators.kusto.timespans import timespan_text

_HEADER = {
    "FrameType": "DataSetHeader",
    "IsProgressive": False,
    "Version": "v2.0",
    "IsFragmented": False,
    "ErrorReportingPlacement": "InData",
}
_VISUALIZATION = [[1, "Visualization", '{"Visualization":null,"Title":null}']]
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
    "Rows": _VISUALIZATION,
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


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an answer out of the results cache comes from.

    Attributes:
        request_id: of the request that it was computed for.
        started_at: when that began, in UTC.
    """

    request_id: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a query.

    Attributes:
        columns: names and Kusto types, in order.
        rows: the rows, each a JSON array, separated by commas.
        seconds: how long the engine worked on it.
    """

    columns: tuple[tuple[str, str], ...]
    rows: bytes
    seconds: float


def columns_of(description: Iterable[Sequence[Any]]) -> tuple[tuple[str, str], ...]:
    """Return the Kusto columns of a DB-API cursor description."""
    return tuple((str(entry[0]), kusto_type(entry[1])) for entry in description)


def encode_rows(columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows as JSON arrays, separated by commas and without the brackets around all of them.

    Raises:
        OverflowError: an integer lies outside 64 bits.
    """
    writers = [_WRITERS.get(kind) for _, kind in columns]
    wire = [
        [value if write is None else write(value) for value, write in zip(row, writers, strict=True)] for row in rows
    ]
    try:
        return orjson.dumps(wire, default=_other, option=_ROW_OPTIONS)[1:-1]
    except TypeError as error:
        raise OverflowError(f"a value has no JSON form: {error}") from error


def data_set(answer: Answer, request_id: str, origin: Origin | None = None) -> bytes:
    """Return the frames of an answered query; ``origin`` says that the answer is one of an earlier request."""
    primary = _primary(answer.columns, answer.rows)
    seconds = answer.seconds if origin is None else 0.0
    last = {"HasErrors": False, "Cancelled": False}
    return _frames(primary, _completion(request_id, seconds), last, _properties(origin))


def failed_data_set(error: QueryError, request_id: str) -> bytes:
    """Return the frames of a query that failed after execution began: no rows, and the error in their place."""
    document = error.document()
    reported = orjson.dumps({"OneApiErrors": [document]})
    completion = {"HasErrors": True, "Cancelled": False, "OneApiErrors": [document]}
    return _frames(_primary((), reported), _completion(request_id, 0.0), completion)


def error_document(error: QueryError, request_id: str) -> bytes:
    """Return the error document of a query that was not executed."""
    document = error.document()
    document["error"]["@context"] = {
        "timestamp": _instant(datetime.now(UTC)),
        "serviceAlias": "embedded",
        "clientRequestId": request_id,
    }
    return orjson.dumps(document)


def _properties(origin: Origin | None) -> Mapping[str, Any]:
    if origin is None:
        return _PROPERTIES
    value = {"OriginalClientRequestId": origin.request_id, "OriginalStartedOn": _instant(origin.started_at)}
    return {**_PROPERTIES, "Rows": [*_VISUALIZATION, [1, "ServerCache", orjson.dumps(value).decode()]]}


def _frames(
    primary: bytes,
    completion: Mapping[str, Any],
    last: Mapping[str, Any],
    properties: Mapping[str, Any] | None = None,
) -> bytes:
    frames = (
        orjson.dumps(_HEADER),
        orjson.dumps(properties or _PROPERTIES),
        primary,
        orjson.dumps(completion),
        orjson.dumps({"FrameType": "DataSetCompletion", **last}),
    )
    return b"[" + b",".join(frames) + b"]"


def _primary(columns: Sequence[tuple[str, str]], rows: bytes) -> bytes:
    named = orjson.dumps([{"ColumnName": name, "ColumnType": kind} for name, kind in columns])
    head = b'{"FrameType":"DataTable","TableId":1,"TableKind":"PrimaryResult","TableName":"PrimaryResult","Columns":'
    return head + named + b',"Rows":[' + rows + b"]}"


def _completion(request_id: str, seconds: float) -> dict[str, Any]:
    common = [_instant(datetime.now(UTC)), request_id, *[str(uuid.uuid4())] * 3]
    done = orjson.dumps({"Count": 1, "Text": "Query completed successfully"}).decode()
    used = orjson.dumps({"ExecutionTime": seconds}).decode()
    return {
        "FrameType": "DataTable",
        "TableId": 2,
        "TableKind": "QueryCompletionInformation",
        "TableName": "QueryCompletionInformation",
        "Columns": _COMPLETION_COLUMNS,
        "Rows": [
            [*common, 4, "Info", 0, "S_OK (0)", 4, "QueryInfo", done],
            [*common, 6, "Stats", 0, "S_OK (0)", 0, "QueryResourceConsumption", used],
        ],
    }


def _instant(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00Z"
    if value is None:
        return None
    raise OverflowError("an instant lies outside the years 1 to 9999")  # DuckDB gives such as texts


def _timespan(value: Any) -> Any:
    if isinstance(value, time):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return timespan_text(value) if isinstance(value, timedelta) else value


def _dynamic(value: Any) -> Any:
    """Embed JSON text as it stands, so that numbers keep their digits; what is no JSON stays a text."""
    if not isinstance(value, str):
        return value
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return orjson.Fragment(value)


def _real(value: Any) -> Any:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _string(value: Any) -> Any:
    """Kusto's string type has no null: its place is taken by the empty string."""
    return "" if value is None else value


def _optional_text(value: Any) -> Any:
    return None if value is None else str(value)


def _decimal(value: Any) -> Any:
    return decimal_text(value) if isinstance(value, Decimal) else _optional_text(value)


def _long(value: Any) -> Any:
    if value is None or value in _LONG:
        return value
    raise OverflowError("an integer lies outside 64 bits")


def _other(value: Any) -> Any:
    if isinstance(value, timedelta):
        return timespan_text(value)
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, Decimal):
        return orjson.Fragment(decimal_text(value))
    if isinstance(value, int):
        return orjson.Fragment(str(value))
    return str(value)


_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "datetime": _instant,
    "timespan": _timespan,
    "dynamic": _dynamic,
    "real": _real,
    "string": _string,
    "decimal": _decimal,
    "guid": _optional_text,
    "long": _long,
}
