"""Rows as text: CSV (RFC 4180) and JSON Lines.

CSV has a header and a column per leaf of the payload, named by its keys joined with dots. Column names and text cells
that a spreadsheet would run as a formula get a leading apostrophe. Numbers remain unchanged, including negative ones.
"""

import json
from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from shared.downloads.flattening import KeyPath
from shared.downloads.row_feed import FIXED_COLUMNS, format_timestamps
from shared.text_formats.csv_cells import FORMULA_STARTS, escape_formula

LINE_END: Final = "\r\n"
COLLISION_PREFIX: Final = "payload."
_NEEDS_QUOTES: Final = '^$|[",\r\n]'
"""Also matches empty text: an unquoted empty cell means null."""
_FORMULA_BYTES: Final = pa.array([start.encode() for start in FORMULA_STARTS], pa.binary())
_NEGATIVE_NUMBER: Final = r"^-(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""Negative JSON numbers; other JSON numbers start with a digit."""
_SPECIAL_CHARACTERS: Final = (b'"', b",", b"\r", b"\n")


def name_columns(paths: Collection[KeyPath]) -> list[tuple[str, KeyPath]]:
    """Return the names and paths of the payload's columns in order; names are unique."""
    named: dict[str, KeyPath] = {}
    for path in sorted(paths, key=lambda one: (".".join(one), one)):
        name = escape_formula(".".join(path))
        while name in FIXED_COLUMNS or name in named:
            name = COLLISION_PREFIX + name
        named[name] = path
    return sorted(named.items())


def format_header(names: Sequence[str]) -> bytes:
    """Return the header line."""
    cells = _format_cells(pa.array([*FIXED_COLUMNS, *names], pa.string()))
    return (",".join(cells.to_pylist()) + LINE_END).encode()


def format_csv_lines(connection: str, rows: pa.RecordBatch, values: pa.Array | None) -> memoryview:
    """Return the CSV lines of some rows.

    Args:
        connection: lookup of the connection.
        rows: batch with ``timestamp``, ``deviceId`` and ``messageId``.
        values: list of payload values per row, in the order of the columns; None without columns.
    """
    parts = [
        format_timestamps(rows.column("timestamp")),
        f"Z,{connection},",
        _format_cells(rows.column("deviceId")),
        ",",
        _format_cells(rows.column("messageId")),
    ]
    if values is not None:
        listed = pa.ListArray.from_arrays(values.offsets, _format_cells(values.values))
        parts += [",", pc.binary_join(listed, ",")]
    return concatenate_texts(pc.binary_join_element_wise(*parts, LINE_END, ""))


def concatenate_texts(texts: pa.Array) -> memoryview:
    """Return the concatenated bytes of all texts without copying them."""
    bounds = texts.offset, texts.offset + len(texts)
    first, last = (memoryview(texts.buffers()[1]).cast("i")[bound] for bound in bounds)
    return memoryview(texts.buffers()[2])[first:last]


def _format_cells(texts: pa.Array) -> pa.Array:
    texts = _escape_formulas(texts)
    if _may_need_quotes(texts):
        to_quote = pc.match_substring_regex(texts, _NEEDS_QUOTES)
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
        texts = pc.if_else(to_quote, quoted, texts)
    return pc.fill_null(texts, "")


def _escape_formulas(texts: pa.Array) -> pa.Array:
    """Return the cells with an apostrophe before each text that starts like a formula and is not a number."""
    suspects = pc.is_in(pc.binary_slice(texts.cast(pa.binary()), 0, 1), _FORMULA_BYTES)
    # Nearly all suspects are negative numbers; checking only the suspects is fast.
    if pc.all(pc.match_substring_regex(texts.filter(suspects), _NEGATIVE_NUMBER), min_count=0).as_py():
        return texts
    formulas = pc.and_(suspects, pc.invert(pc.match_substring_regex(texts, _NEGATIVE_NUMBER)))
    return pc.if_else(formulas, pc.binary_join_element_wise("'", texts, ""), texts)


def _may_need_quotes(texts: pa.Array) -> bool:
    """Return whether a text contains a special character or is empty; checking all bytes together is fast."""
    data = bytes(concatenate_texts(texts))
    return any(mark in data for mark in _SPECIAL_CHARACTERS) or pc.min(pc.binary_length(texts)).as_py() == 0


_ESCAPED_CHARACTERS: Final = bytes(range(0x20)) + b'"\\'


def format_json_lines(connection: str, rows: pa.RecordBatch) -> memoryview:
    """Return the JSON lines of a connection's rows: ``timestamp``, ``deviceId``, ``messageId``, ``payload``."""
    lines = pc.binary_join_element_wise(
        '{"timestamp":"',
        format_timestamps(rows.column("timestamp")),
        f'Z","connection":{json.dumps(connection)},"deviceId":',
        _to_json_strings(rows.column("deviceId")),
        ',"messageId":',
        _to_json_strings(rows.column("messageId")),
        ',"payload":',
        _remove_line_breaks(rows.column("payload")),
        "}\n",
        "",
    )
    return concatenate_texts(lines)


def _to_json_strings(texts: pa.Array) -> pa.Array:
    data = bytes(concatenate_texts(texts))
    if len(data.translate(None, _ESCAPED_CHARACTERS)) < len(data):
        return pa.array([json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', texts, '"', "")


def _remove_line_breaks(payloads: pa.Array) -> pa.Array:
    # A raw line break in JSON text is white space; in strings it is always escaped.
    data = bytes(concatenate_texts(payloads))
    for line_break in ("\n", "\r"):
        if line_break.encode() in data:
            payloads = pc.replace_substring(payloads, line_break, " ")
    return payloads
