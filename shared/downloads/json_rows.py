"""JSON Lines: an object a row, its payload whole."""

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from shared.downloads.csv_rows import text_bytes
from shared.downloads.rows import timestamp_texts

_TO_ESCAPE: Final = bytes(range(0x20)) + b'"\\'


def line_buffer(connection: str, rows: pa.RecordBatch) -> memoryview:
    """Return the lines of some rows of a connection: ``timestamp``, ``deviceId``, ``messageId`` and ``payload``."""
    lines = pc.binary_join_element_wise(
        '{"timestamp":"',
        timestamp_texts(rows.column("timestamp")),
        f'Z","connection":{json.dumps(connection)},"deviceId":',
        _strings(rows.column("deviceId")),
        ',"messageId":',
        _strings(rows.column("messageId")),
        ',"payload":',
        _one_line(rows.column("payload")),
        "}\n",
        "",
    )
    return text_bytes(lines)


def _strings(texts: pa.Array) -> pa.Array:
    data = bytes(text_bytes(texts))
    if len(data.translate(None, _TO_ESCAPE)) < len(data):
        return pa.array([json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "")


def _one_line(payloads: pa.Array) -> pa.Array:
    # Within JSON text a bare line break is white space; in strings it is always escaped.
    data = bytes(text_bytes(payloads))
    for line_break in ("\n", "\r"):
        if line_break.encode() in data:
            payloads = pc.replace_substring(payloads, line_break, " ")
    return payloads
