"""Replies with the rows of a query as JSON, CSV (RFC 4180), Parquet or Arrow, with an ETag."""

import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final
from urllib.parse import quote

from shared.conditional_requests import UNCONDITIONAL, Condition
from shared.http.messages import JSON, Reply, Request
from shared.http.negotiation import choose_media_type
from shared.runtime import LARGE
from shared.text_formats.csv_cells import escape_csv_formula
from shared.text_formats.serialisation import iterate_json_parts_of_rows, serialise_json, to_json_text
from shared.timestamps import format_rfc3339
from shared.warm_queries.results import QueryResult
from shared.wiring import services


def to_parquet(result: QueryResult) -> bytes:
    """Convert a query's result to a Parquet file with the columns of :func:`_to_arrow_table`."""
    from pyarrow import parquet  # noqa: PLC0415  the import takes 0.1 s, and few processes need it

    sink = io.BytesIO()
    parquet.write_table(_to_arrow_table(result), sink, compression="zstd")
    return sink.getvalue()


def to_arrow(result: QueryResult) -> bytes:
    """Convert a query's result to an Arrow IPC stream with the columns of :func:`_to_arrow_table`."""
    import pyarrow as pa  # noqa: PLC0415  the import takes 0.1 s, and few processes need it

    table = _to_arrow_table(result)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _to_arrow_table(result: QueryResult) -> Any:
    """Convert a query's result to an Arrow table.

    Numbers, booleans and timestamps become typed columns. Dynamic values become JSON text, and all other types text.
    """
    import pyarrow as pa  # noqa: PLC0415  as above

    types = {
        "bool": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "real": pa.float64(),
        "datetime": pa.timestamp("us", tz="UTC"),
    }
    arrays = [
        _to_arrow_times(cells, types["datetime"])
        if column.type == "datetime"
        else pa.array(_convert_cells_for_arrow(column.type, cells), types.get(column.type, pa.string()))
        for column, cells in zip(result.columns, _list_column_values(result), strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in result.columns])


def _list_column_values(result: QueryResult) -> Sequence[list[Any]]:
    if result.values is not None:
        return result.values
    return [[row[column.name] for row in result.rows] for column in result.columns]


def _to_arrow_times(cells: list[Any], arrow_type: Any) -> Any:
    """Convert a list of times in the service's format to an Arrow array.

    Converting the whole list in one call is ten times as fast as converting each time separately.
    """
    import pyarrow as pa  # noqa: PLC0415  as above

    return pa.array(cells, pa.string()).cast(arrow_type)


def _convert_cells_for_arrow(kusto_type: str, cells: Iterable[Any]) -> list[Any]:
    convert: Callable[[Any], Any] = _CONVERTERS.get(kusto_type, _to_arrow_cell_text)
    return [None if cell is None else convert(cell) for cell in cells]


def _to_arrow_cell_text(value: Any) -> str:
    return value if isinstance(value, str) else to_json_text(value)


_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "bool": bool,
    "int": int,
    "long": int,
    "real": float,
    "dynamic": to_json_text,
}


_TIMING_BYTES: Final = 100
"""Length of the timing properties in a JSON reply, with spaces."""

_VARY = {"Vary": "Accept, Authorization"}
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
_LINE_END: Final = "\r\n"
_LONG_CELL: Final = 65_536
"""Length of a CSV cell above which this module quotes it instead of the CSV writer.

The writer holds the interpreter lock for the whole cell.
"""
_TEXT_TYPES = frozenset({"string", "dynamic"})
"""Kusto types whose values can be free text, which a spreadsheet can take for a formula."""


class RowFormat(StrEnum):
    """Format of rows in a reply, as the parameter ``format`` names it."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


_MEDIA_TYPES: Final[Mapping[RowFormat, str]] = {
    RowFormat.JSON: JSON,
    RowFormat.CSV: CSV,
    RowFormat.PARQUET: PARQUET,
    RowFormat.ARROW: ARROW,
}


_COLUMNAR: Final = frozenset({PARQUET, ARROW})


def is_reply_columnar(request: Request, row_format: RowFormat | None) -> bool:
    """Return whether the reply's format stores columns (Parquet, Arrow); the query's result then needs no rows."""
    return _choose_media_type(request, row_format) in _COLUMNAR


def _choose_media_type(request: Request, row_format: RowFormat | None) -> str:
    if row_format is not None:
        return _MEDIA_TYPES[row_format]
    return choose_media_type(request.headers.get("accept", ""), tuple(_MEDIA_TYPES.values()))


async def build_query_reply(
    request: Request,
    result: QueryResult,
    row_format: RowFormat | None = None,
    condition: Condition = UNCONDITIONAL,
) -> Reply:
    """Build the reply with the rows of a query's result, or a 304 reply if the caller's ETag matches.

    Args:
        request: request of the caller, with its header Accept.
        result: result of the query, with values by column if :func:`is_reply_columnar` is true, else with rows.
        row_format: format that the caller selected; None for the media type that the header Accept prefers.
        condition: condition of the header If-None-Match.
    """
    media_type = _choose_media_type(request, row_format)
    size = _estimate_reply_characters(result, media_type)
    rows, etag = await services().runtime.run_in_thread_if_large(
        size, _serialise_rows_and_compute_etag, result, media_type
    )
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", **_VARY}
    # The condition compares opaque tags, without the prefix of weak ETags.
    if condition.is_not_modified(etag.removeprefix("W/")):
        return Reply(304, b"", headers)
    headers |= _build_execution_headers(result)
    if media_type == JSON:
        body = await services().runtime.run_in_thread_if_large(size, _build_json_document, result, rows)
        return Reply(200, body, {"Content-Type": JSON, **headers})
    content_type = f"{CSV}; charset=utf-8; header=present" if media_type == CSV else media_type
    return Reply(200, b"".join(rows), {"Content-Type": content_type, **headers})


def _estimate_reply_characters(result: QueryResult, media_type: str) -> int:
    """Estimate the size of a reply with rows, to decide whether it is built in a worker thread."""
    if media_type in _COLUMNAR:
        return LARGE  # the first import of the library takes too long for the event loop
    return result.size + result.row_count * sum(len(column.name) for column in result.columns)


def _serialise_rows_and_compute_etag(result: QueryResult, media_type: str) -> tuple[list[bytes], str]:
    """Serialise the rows of a query's result in a media type; return the parts of the bytes and their ETag."""
    if media_type == JSON:
        parts = [b"[", *iterate_json_parts_of_rows(result.rows, result.size), b"]"]
    else:
        parts = [_WRITERS[media_type](result)]
    return parts, _compute_etag(result, media_type, parts)


def _build_json_document(result: QueryResult, json_row_parts: Sequence[bytes]) -> bytes:
    approval = result.approval
    document: dict[str, Any] = {
        "governance": {
            "queryApprovedBy": approval.approved_by if approval else None,
            "queryApprovedAt": format_rfc3339(approval.approved_at) if approval else None,
        },
        "columns": [{"name": column.name, "type": column.type} for column in result.columns],
        "rowCount": result.row_count,
        "truncated": result.truncated,
    }
    if result.visualization is not None:
        document["visualization"] = result.visualization
    timing: dict[str, Any] = {"executionTimeMs": _round_execution_milliseconds(result)}
    if result.from_cache is not None:
        timing |= {"fromCache": result.from_cache, "asOf": format_rfc3339(result.executed_at)}
    # The rows are inserted as bytes, because they are already serialised for the ETag.
    head = serialise_json({"query": result.query, "executedAt": format_rfc3339(result.executed_at)})[:-1]
    # Spaces make the replies to identical requests equally long, for clients that compare lengths.
    tail = serialise_json(timing)[1:-1].ljust(_TIMING_BYTES)
    # Parts are joined only once, because each copy of a large reply blocks the other threads.
    return b"".join((head, b',"results":', *json_row_parts, b",", serialise_json(document)[1:-1], b",", tail, b"}"))


def _round_execution_milliseconds(result: QueryResult) -> float:
    return round(result.execution_ms, 3)


def _build_execution_headers(result: QueryResult) -> dict[str, str]:
    headers = {
        "x-query-executed-at": format_rfc3339(result.executed_at),
        "x-query-execution-time-ms": str(_round_execution_milliseconds(result)),
        "x-query-truncated": str(result.truncated).lower(),
    }
    if result.from_cache is not None:
        headers["x-query-from-cache"] = str(result.from_cache).lower()
    if result.approval is not None:
        # Header values must be ASCII, so other characters are percent-encoded.
        headers["x-query-approved-by"] = quote(result.approval.approved_by, safe="@ !#$&'()*+,/:;=?[]")
        headers["x-query-approved-at"] = format_rfc3339(result.approval.approved_at)
    return headers


def _compute_etag(result: QueryResult, media_type: str, serialised_parts: Sequence[bytes]) -> str:
    """Compute a weak ETag from the rows and the approval of the query, but not from the time of execution."""
    approval = result.approval and (result.approval.approved_by, format_rfc3339(result.approval.approved_at))
    columns = [(column.name, column.type) for column in result.columns]
    identity: list[Any] = [media_type, result.query, approval, columns, result.truncated]
    if media_type == JSON and result.visualization is not None:
        identity.append(result.visualization)
    digest = hashlib.blake2b(serialise_json(identity), digest_size=16)
    for part in serialised_parts:
        digest.update(part)
    return f'W/"{digest.hexdigest()}"'


def to_csv(result: QueryResult) -> bytes:
    """Convert the rows of a query's result to UTF-8 CSV with a header line.

    Null is an empty cell; a dynamic object or array is JSON text. Column names and text cells that begin like a formula
    get a leading apostrophe. Values of other types cannot be formulas and are not changed.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=_LINE_END)
    cells = [
        (column.name, _format_csv_cell_and_escape_formula if column.type in _TEXT_TYPES else _format_csv_cell)
        for column in result.columns
    ]
    writer.writerow([escape_csv_formula(name) for name, _ in cells])
    for row in result.rows:
        values = [cell(row[name]) for name, cell in cells]
        if any(isinstance(value, str) and len(value) > _LONG_CELL for value in values):
            text.write(",".join(map(_format_and_quote_csv_cell, values)) + _LINE_END)
        else:
            writer.writerow(values)
    return text.getvalue().encode("utf-8")


def _format_and_quote_csv_cell(value: Any) -> str:
    """Format a cell as CSV text with the quoting rules of ``csv.writer``; for long cells, this function is faster."""
    text = "" if value is None else str(value)
    return '"{}"'.format(text.replace('"', '""')) if any(mark in text for mark in ',"\r\n') else text


type _CsvCell = str | int | float | None


def _format_csv_cell_and_escape_formula(value: Any) -> _CsvCell:
    return escape_csv_formula(value) if isinstance(value, str) else _format_csv_cell(value)


def _format_csv_cell(value: Any) -> _CsvCell:
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json_text(value) if isinstance(value, dict | list) else value


_WRITERS: Final[Mapping[str, Callable[[QueryResult], bytes]]] = {CSV: to_csv, PARQUET: to_parquet, ARROW: to_arrow}
