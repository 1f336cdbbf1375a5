"""Replies that contain records of an audit chain: one created record, a JSON list, or a CSV file."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import orjson

from functions.provenance_queries import LenientParser
from shared.http.messages import JSON, Reply
from shared.interpreter import pause_garbage_collection
from shared.provenance.appender import AppendResult
from shared.provenance.decisions import parse_content_if_verified
from shared.provenance.hash_rule import RECORD_ID_DIGITS, get_filter_fields
from shared.provenance.ports import ChainKey, ChainRecord
from shared.provenance.queries import AuditQueryResult
from shared.provenance.records import build_damaged_record_error, parse_record, record_to_json
from shared.text_formats.csv_cells import escape_csv_formula
from shared.wiring import services

CSV_COLUMNS = ("RecordID", "Timestamp", "UserID", "ActionType", "EntityType", "EntityID", "PreviousHash", "Hash")
MAX_LINK = 2_048
DAMAGED = "x-provenance-damaged"
MAX_DAMAGED = 100


async def build_created_reply(chain: ChainKey, appended: AppendResult) -> Reply:
    """Build the 201 reply with a new audit record, and a Link header to the checkpoint that will cover it.

    Raises:
        WorkspaceError: CONFLICT ``RECORD_DAMAGED`` if an earlier request has stored the record, and the record was
            changed in the store since.
    """
    record = appended.record
    if appended.repeated:
        await _require_undamaged_record(record)
    parameters = {"target": str(chain.target), **({"scopeKey": chain.scope_key} if chain.scope_key else {})}
    link = f'</oi-api/provenance/checkpoint?{urlencode(parameters)}>; rel="checkpoint"'
    # Proxies reject header lines longer than a few kilobytes.
    headers = {"Link": link} if len(link) <= MAX_LINK else {}
    return Reply(201, record_to_json(record), {"Content-Type": JSON, **headers})


async def _require_undamaged_record(record: ChainRecord) -> None:
    content = await services().runtime.run_in_thread_if_large(len(record.canonical), parse_content_if_verified, record)
    if content is None:
        raise build_damaged_record_error(record.sequence)


async def build_record_list_reply(chain: ChainKey, result: AuditQueryResult, parser: LenientParser) -> Reply:
    """Build a reply with audit records as a JSON array.

    Headers state the number of records that were read, whether more records match, the target of the chain, damaged
    records and ignored parameters.
    """
    headers = {
        "Content-Type": JSON,
        "x-provenance-scanned": str(result.scanned),
        "x-provenance-has-more": "true" if result.has_more else "false",
        "x-provenance-target": str(chain.target),
        **({DAMAGED: ", ".join(result.damaged[:MAX_DAMAGED])} if result.damaged else {}),
        **parser.build_ignored_parameters_header(),
    }
    return Reply(200, await services().runtime.run_in_thread(result.to_json_array), headers)


async def build_csv_reply(chain: ChainKey, result: AuditQueryResult, parser: LenientParser) -> Reply:
    """Build a reply with audit records as CSV, and the same headers as :func:`build_record_list_reply`."""
    reply = await build_record_list_reply(chain, replace(result, records=()), parser)
    reply.body = await services().runtime.run_in_thread(_encode_records_as_csv, result.records)
    reply.headers["Content-Type"] = "text/csv; charset=utf-8; header=present"
    return reply


def compute_max_csv_bytes(record: ChainRecord) -> int:
    """Return an upper limit for the size in bytes of a record as CSV; the record may be damaged."""
    try:
        content = orjson.loads(record.canonical)
    except ValueError:
        content = None
    cells = _build_csv_cells(content) if isinstance(content, dict) else []
    # The writer doubles quotation marks.
    cells_size = sum(2 * len(cell.encode()) for cell in cells)
    return cells_size + len(CSV_COLUMNS) * len("'',") + len("\r\n") + RECORD_ID_DIGITS + len(record.hash)


def build_export_file_name(chain: ChainKey) -> str:
    """Build the file name of an export; the specification requires ``.csv`` for both formats."""
    return f"provenance-{re.sub(r'[^A-Za-z0-9._-]', '_', chain.scope_key or chain.target)}.csv"


def _encode_records_as_csv(records: Sequence[ChainRecord]) -> bytes:
    with pause_garbage_collection(sum(len(record.canonical) for record in records)):
        return _format_records_as_csv_text(records).encode("utf-8")


def _format_records_as_csv_text(records: Sequence[ChainRecord]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(CSV_COLUMNS)
    for record in records:
        writer.writerow(_build_csv_cells(parse_record(record.canonical, record.hash)))
    return text.getvalue()


def _build_csv_cells(content: Mapping[str, Any]) -> list[str]:
    # The stored filter fields are not used: the hash does not cover them, so a writer to the store could forge them.
    members = {**content, **get_filter_fields(content)}
    values = (members.get(name) for name in CSV_COLUMNS)
    return ["" if value is None else escape_csv_formula(str(value)) for value in values]
