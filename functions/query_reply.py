"""Replies with the rows of a query as JSON, CSV (RFC 4180) or Parquet, with an ETag."""

import asyncio
import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote

from shared.http.messages import JSON, Reply, Request, json_bytes
from shared.http.negotiation import choose_media_type
from shared.text_formats.csv_cells import escape_formula
from shared.timestamps import parse_rfc3339, rfc3339
from shared.warm_queries.results import QueryResult

_CHUNK = 250
"""Number of rows that are serialised in one call."""
_VARY = {"Vary": "Accept, Authorization"}
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
_TEXT_TYPES = frozenset({"string", "dynamic"})
"""Types whose values can be free text."""


async def build_query_reply(request: Request, run: QueryResult) -> Reply:
    """Build the reply with the rows in the caller's preferred media type, or a 304 if the caller's ETag matches."""
    media_type = choose_media_type(request.headers.get("accept", ""), (JSON, CSV, PARQUET))
    rows, etag = await asyncio.to_thread(_serialise_rows, run, media_type)
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", **_VARY}
    if request.method in ("GET", "HEAD") and _matches(request.headers.get("if-none-match", ""), etag):
        return Reply(304, b"", headers)
    if media_type == JSON:
        return Reply(200, await asyncio.to_thread(_build_document, run, rows), {"Content-Type": JSON, **headers})
    body = await asyncio.to_thread(to_csv if media_type == CSV else to_parquet, run)
    content_type = f"{CSV}; charset=utf-8; header=present" if media_type == CSV else PARQUET
    return Reply(200, body, {"Content-Type": content_type, **headers, **_build_governance_headers(run)})


def _serialise_rows(run: QueryResult, media_type: str) -> tuple[bytes, str]:
    # Rows are serialised in chunks, because serialising all rows in one call would block the other threads.
    parts = (json_bytes(run.rows[start : start + _CHUNK])[1:-1] for start in range(0, len(run.rows), _CHUNK))
    rows = b"[%b]" % b",".join(parts)
    return rows, _compute_etag(run, media_type, rows)


def _build_document(run: QueryResult, rows: bytes) -> bytes:
    approval = run.approval
    document: dict[str, Any] = {
        "governance": {
            "queryApprovedBy": approval.approved_by if approval else None,
            "queryApprovedAt": rfc3339(approval.approved_at) if approval else None,
        },
        "columns": [{"name": column.name, "type": column.type} for column in run.columns],
        "rowCount": len(run.rows),
        "truncated": run.truncated,
        "executionTimeMs": round(run.execution_ms, 3),
    }
    if run.from_cache is not None:
        document |= {"fromCache": run.from_cache, "asOf": rfc3339(run.executed_at)}
    # The rows are inserted as bytes, because they are already serialised for the ETag.
    head = json_bytes({"query": run.query, "executedAt": rfc3339(run.executed_at)})[:-1]
    return b'%b,"results":%b,%b' % (head, rows, json_bytes(document)[1:])


def _build_governance_headers(run: QueryResult) -> dict[str, str]:
    headers = {"x-query-executed-at": rfc3339(run.executed_at), "x-query-truncated": str(run.truncated).lower()}
    if run.from_cache is not None:
        headers["x-query-from-cache"] = str(run.from_cache).lower()
    if run.approval is not None:
        # Header values must be ASCII, so other characters are percent-encoded.
        headers["x-query-approved-by"] = quote(run.approval.approved_by, safe="@ !#$&'()*+,/:;=?[]")
        headers["x-query-approved-at"] = rfc3339(run.approval.approved_at)
    return headers


def _compute_etag(run: QueryResult, media_type: str, rows: bytes) -> str:
    """Compute a weak ETag from the rows and the approval of the query; it does not depend on the time of execution."""
    approval = run.approval and (run.approval.approved_by, rfc3339(run.approval.approved_at))
    columns = [(column.name, column.type) for column in run.columns]
    digest = hashlib.blake2b(json_bytes([media_type, run.query, approval, columns, run.truncated]), digest_size=16)
    digest.update(rows)
    return f'W/"{digest.hexdigest()}"'


def _matches(if_none_match: str, etag: str) -> bool:
    candidates = {candidate.strip() for candidate in if_none_match.split(",")}
    return "*" in candidates or etag in candidates or etag.removeprefix("W/") in candidates


def to_csv(result: QueryResult) -> bytes:
    """Return the rows as UTF-8 CSV with a header line.

    Null is an empty cell; a dynamic object or array is JSON text. Column names and text cells that begin like a formula
    get a leading apostrophe. Values of other types cannot be formulas and are not changed.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    cells = [
        (column.name, _format_text_cell if column.type in _TEXT_TYPES else _format_cell) for column in result.columns
    ]
    writer.writerow([escape_formula(name) for name, _ in cells])
    writer.writerows([cell(row[name]) for name, cell in cells] for row in result.rows)
    return text.getvalue().encode("utf-8")


def to_parquet(result: QueryResult) -> bytes:
    """Return the rows as a Parquet file.

    Numbers, booleans and instants are typed columns; other types are text, and dynamic values are JSON text.
    """
    import pyarrow as pa  # noqa: PLC0415  the import takes 0.1 s, and few processes need it
    from pyarrow import parquet  # noqa: PLC0415  as above

    types = {
        "bool": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "real": pa.float64(),
        "datetime": pa.timestamp("us", tz="UTC"),
    }
    arrays = [
        pa.array(
            _convert_values(column.type, (row[column.name] for row in result.rows)), types.get(column.type, pa.string())
        )
        for column in result.columns
    ]
    sink = io.BytesIO()
    table = pa.Table.from_arrays(arrays, names=[column.name for column in result.columns])
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _format_text_cell(value: Any) -> Any:
    return escape_formula(value) if isinstance(value, str) else _format_cell(value)


def _format_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _to_json(value) if isinstance(value, dict | list) else value


def _convert_values(kind: str, cells: Iterable[Any]) -> list[Any]:
    convert: Callable[[Any], Any] = _CONVERTERS.get(kind, _to_text)
    return [None if cell is None else convert(cell) for cell in cells]


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else _to_json(value)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "long": int,
    "real": float,
    "datetime": parse_rfc3339,
    "dynamic": _to_json,
}
