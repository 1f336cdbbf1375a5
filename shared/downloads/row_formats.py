"""CSV after RFC 4180: a header, and the payload's leaves as columns, their names joined with dots.

Column names and text cells that a spreadsheet would run as a formula get a leading apostrophe. A cell that is a number
stays as it is, also a negative one.
"""

import json
from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from shared.downloads.flattening import Path
from shared.downloads.row_feed import FIXED_COLUMNS, format_timestamps
from shared.text_formats.csv_cells import FORMULA_STARTS, escape_formula

LINE_END: Final = "\r\n"
COLLISION_PREFIX: Final = "payload."
_TO_QUOTE: Final = '^$|[",\r\n]'
"""Empty text is quoted too: an unquoted empty cell is null."""
_FORMULA_BYTES: Final = pa.array([start.encode() for start in FORMULA_STARTS], pa.binary())
_NEGATIVE_NUMBER: Final = r"^-(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""JSON's negative numbers; its other numbers begin with a digit."""
_MARKS: Final = (b'"', b",", b"\r", b"\n")


def name_columns(paths: Collection[Path]) -> list[tuple[str, Path]]:
    """Return the payload's columns in order: their names, each once and none a fixed column's, with their paths."""
    named: dict[str, Path] = {}
    for path in sorted(paths, key=lambda one: (".".join(one), one)):
        name = escape_formula(".".join(path))
        while name in FIXED_COLUMNS or name in named:
            name = COLLISION_PREFIX + name
        named[name] = path
    return sorted(named.items())


def format_header(names: Sequence[str]) -> bytes:
    """Return the header line."""
    cells = _cells(pa.array([*FIXED_COLUMNS, *names], pa.string()))
    return (",".join(cells.to_pylist()) + LINE_END).encode()


def format_csv_lines(connection: str, rows: pa.RecordBatch, values: pa.Array | None) -> memoryview:
    """Return the lines of some rows.

    Args:
        connection: whose rows they are.
        rows: with ``timestamp``, ``deviceId`` and ``messageId``.
        values: for each row the list of its payload's values, of one length, in the columns' order; None for none.
    """
    parts = [
        format_timestamps(rows.column("timestamp")),
        f"Z,{connection},",
        _cells(rows.column("deviceId")),
        ",",
        _cells(rows.column("messageId")),
    ]
    if values is not None:
        listed = pa.ListArray.from_arrays(values.offsets, _cells(values.values))
        parts += [",", pc.binary_join(listed, ",")]
    return text_bytes(pc.binary_join_element_wise(*parts, LINE_END, ""))


def text_bytes(texts: pa.Array) -> memoryview:
    """Return the bytes of all texts, one behind the other, without copying them."""
    bounds = texts.offset, texts.offset + len(texts)
    first, last = (memoryview(texts.buffers()[1]).cast("i")[bound] for bound in bounds)
    return memoryview(texts.buffers()[2])[first:last]


def _cells(texts: pa.Array) -> pa.Array:
    texts = _escape_formulas(texts)
    if _may_need_quotes(texts):
        to_quote = pc.match_substring_regex(texts, _TO_QUOTE)
        quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
        texts = pc.if_else(to_quote, quoted, texts)
    return pc.fill_null(texts, "")


def _escape_formulas(texts: pa.Array) -> pa.Array:
    """Return the cells, with an apostrophe before each one that begins like a formula and is no number."""
    suspects = pc.is_in(pc.binary_slice(texts.cast(pa.binary()), 0, 1), _FORMULA_BYTES)
    # Nearly all suspects are negative numbers; it is quick to look at the suspects alone.
    if pc.all(pc.match_substring_regex(texts.filter(suspects), _NEGATIVE_NUMBER), min_count=0).as_py():
        return texts
    formulas = pc.and_(suspects, pc.invert(pc.match_substring_regex(texts, _NEGATIVE_NUMBER)))
    return pc.if_else(formulas, pc.binary_join_element_wise("'", texts, ""), texts)


def _may_need_quotes(texts: pa.Array) -> bool:
    """Return whether some text holds a mark or is empty; looking at all bytes at once is quick."""
    data = bytes(text_bytes(texts))
    return any(mark in data for mark in _MARKS) or pc.min(pc.binary_length(texts)).as_py() == 0


_TO_ESCAPE: Final = bytes(range(0x20)) + b'"\\'


def format_json_lines(connection: str, rows: pa.RecordBatch) -> memoryview:
    """Return the lines of some rows of a connection: ``timestamp``, ``deviceId``, ``messageId`` and ``payload``."""
    lines = pc.binary_join_element_wise(
        '{"timestamp":"',
        format_timestamps(rows.column("timestamp")),
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
