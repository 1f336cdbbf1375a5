"""Fast conversion of plain CSV text to telemetry messages with DuckDB.

A row is converted here only if the result certainly equals that of ``RowMapper``. Other rows are returned by number,
and the caller converts them one by one with ``RowMapper``. The text must be plain; see :func:`is_plain_csv`.

Separate from ``csv_reader`` because it needs DuckDB, and converts only texts without special cases.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from shared.catalog.models import TimestampFormat
from shared.cold_data.engine import quote_text
from shared.imports.row_mapping import RowMapper
from shared.timestamps import to_microseconds

if TYPE_CHECKING:
    import duckdb

MAX_COLUMNS: Final = 100
"""Number of columns above which a file is converted row by row, because DuckDB allocates vectors for each column."""
_CONTROLS: Final = bytes(each for each in range(32) if each not in b"\t\r\n") + b"\x7f"
_WIDE_SPACES: Final = tuple(
    each.encode()
    for each in "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028"
    "\u2029\u202f\u205f\u3000"
)
_DECIMAL: Final = r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{0,5}[1-9])?"
"""Pattern for numbers of at most 15 digits in their shortest form; numbers below 0.0001 also match but are not."""
_NUMBER: Final = r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?"
_NUMBER_LIKE: Final = r"\s*-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*"
_MEMORY: Final = "128MB"
_MOST_THREADS: Final = 4
_LONGEST_PAYLOAD: Final = 200_000
_UNCERTAIN: Final = "chr(1)"
_ZONED: Final = (("Z", 27), ("+__:__", 32), ("-__:__", 32))
"""LIKE patterns for the end of a time with a zone, each with the maximum length of such a time."""
_LOCAL: Final = (("", 26),)


@dataclass(frozen=True, slots=True)
class BulkRows:
    """Result of converting a CSV text: messages, and the rows that need slow conversion.

    Attributes:
        rows: number of rows of the text.
        messages: messages with the columns ``step_rows.SCHEMA``.
        others: cells of the rows that must be converted one by one, by row number.
    """

    rows: int
    messages: pa.Table
    others: dict[int, list[str]]


def is_plain_csv(text: bytes, delimiter: str) -> bool:
    """Return whether a CSV text can be converted in bulk: quotes enclose whole cells, no unusual white space."""
    if len(text.translate(None, _CONTROLS)) != len(text) or text.count(b"\r") != text.count(b"\r\n"):
        return False
    if delimiter != "\t" and b"\t" in text:
        return False
    if b'"' in text and not _has_plain_quotes(text, delimiter):
        return False
    return text.isascii() or not any(each in text for each in _WIDE_SPACES)


def _has_plain_quotes(text: bytes, delimiter: str) -> bool:
    """Return whether all quotes enclose whole cells, and no quoted cell contains a quote or line break."""
    mark = delimiter.encode()
    # A quote opens a cell after a line break or delimiter, and closes it before one; the text between has no break.
    framed = b"\n%b\n" % text.replace(b"\r\n", b"\n")
    parts = framed.split(b'"')
    outside, inside = parts[::2], parts[1::2]
    if len(outside) != len(inside) + 1 or any(b"\n" in cell or b"\r" in cell for cell in inside):
        return False
    edges = (mark, b"\n")
    return all(part.endswith(edges) for part in outside[:-1]) and all(part.startswith(edges) for part in outside[1:])


def open_converter() -> "duckdb.DuckDBPyConnection":
    """Return a DuckDB engine with bounded memory that has no access to files."""
    import duckdb  # noqa: PLC0415  loading it takes long

    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _MEMORY,
        "threads": min(_MOST_THREADS, os.cpu_count() or 1),
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    engine = duckdb.connect(":memory:", config=limits)
    engine.execute("SET TimeZone = 'UTC'")
    return engine


class BulkConverter:
    """Converts plain CSV text to messages with SQL.

    Args:
        columns: names of the file's columns.
        mapper: converter of single rows, whose rules the SQL must reproduce.
        engine: DuckDB engine of the conversion.
    """

    def __init__(self, columns: Sequence[str], mapper: RowMapper, engine: "duckdb.DuckDBPyConnection") -> None:
        self._columns = columns
        self._mapper = mapper
        self._engine = engine
        self._names = [f"c{number}" for number in range(len(columns))]
        self._query = self._build_query()

    def convert(self, text: bytes, first_row: int) -> BulkRows | None:
        """Convert complete CSV lines; return None if a line has a wrong number of cells or is not UTF-8.

        Args:
            text: plain CSV text without the header.
            first_row: number of the text's first row in the file.
        """
        table = self._parse_text(text)
        if table is None:
            return None
        numbers = pa.array(range(first_row, first_row + table.num_rows), pa.int64())
        self._engine.register("cells", table.append_column("number", numbers))
        converted = self._engine.sql(self._query).to_arrow_table()
        self._engine.unregister("cells")
        certain = self._find_safely_converted_rows(converted)
        messages = pa.table(
            {
                "number": converted.column("number"),
                "timestamp": self._build_timestamps(converted),
                "device_id": converted.column("device_id"),
                "message_id": converted.column("message_id"),
                "payload": converted.column("payload"),
            }
        )
        if pc.all(certain).as_py():
            return BulkRows(table.num_rows, messages, {})
        return BulkRows(table.num_rows, messages.filter(certain), self._list_uncertain_rows(table, certain, first_row))

    def _parse_text(self, text: bytes) -> pa.Table | None:
        is_valid = True

        def reject_row(_: object) -> str:
            nonlocal is_valid
            is_valid = False
            return "skip"

        try:
            table = pa_csv.read_csv(
                pa.py_buffer(text),
                read_options=pa_csv.ReadOptions(column_names=self._names, block_size=4 * 1024 * 1024),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self._mapper.mapping.delimiter,
                    quote_char='"',
                    double_quote=False,
                    invalid_row_handler=reject_row,
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(self._names, pa.string()),
                    strings_can_be_null=True,
                    null_values=[""],
                    quoted_strings_can_be_null=False,
                ),
                # Arrow's own allocator would keep the memory of each thread after the step.
                memory_pool=pa.system_memory_pool(),
            )
        except pa.ArrowInvalid:
            return None
        return table if is_valid else None

    def _find_safely_converted_rows(self, converted: pa.Table) -> pa.ChunkedArray:
        """Return for each row whether ``RowMapper`` would certainly convert it equally; others are converted again."""
        certain = pc.and_(
            pc.is_valid(converted.column("instant")),
            pc.less_equal(converted.column("instant"), to_microseconds(self._mapper.latest)),
        )
        certain = pc.and_(certain, pc.is_valid(converted.column("payload")))
        if self._mapper.patterns:
            devices = converted.column("device_id").unique()
            known = [
                each for each in devices.to_pylist() if any(fnmatchcase(each, one) for one in self._mapper.patterns)
            ]
            certain = pc.and_(certain, pc.is_in(converted.column("device_id"), pa.array(known, pa.string())))
        return pc.fill_null(certain, fill_value=False)

    def _build_timestamps(self, converted: pa.Table) -> pa.ChunkedArray:
        return converted.column("instant").cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))

    def _list_uncertain_rows(self, table: pa.Table, certain: pa.ChunkedArray, first_row: int) -> dict[int, list[str]]:
        numbers = pc.indices_nonzero(pc.invert(certain)).to_pylist()
        if not numbers:
            return {}
        rows = table.take(pa.array(numbers, pa.int64()))
        cells = zip(*(rows.column(name).fill_null("").to_pylist() for name in self._names), strict=True)
        return {first_row + number: list(row) for number, row in zip(numbers, cells, strict=True)}

    def _build_query(self) -> str:
        mapping, lookup = self._mapper.mapping, quote_text(self._mapper.connection)
        device = self._get_cell_name(mapping.device)
        device_id = f"CASE WHEN coalesce(trim({device}), '') = '' THEN {lookup} ELSE {device} END" if device else lookup
        own_id = self._get_cell_name(mapping.message_id)
        texts = [each for each in (device, own_id) if each]
        short = " AND ".join(f"coalesce(length({each}), 0) <= 256" for each in texts) or "true"
        prepared = (
            f"SELECT number, {self._build_instant_sql()} AS instant, {device_id} AS device_id, "  # noqa: S608  quoted
            f"{own_id or 'NULL'} AS own_id, {self._build_payload_sql()} AS payload, {short} AS is_short FROM cells"
        )
        text = (
            f"""'[' || {quote_text(json.dumps(self._mapper.connection, ensure_ascii=False))} || ',' || """
            f"""to_json(device_id)::VARCHAR || ',"' || """
            """strftime(make_timestamp(instant), '%Y-%m-%dT%H:%M:%S.%fZ') || '",' || payload || ']'"""
        )
        derived = f"sha256({text})[:32]"
        message_id = f"CASE WHEN coalesce(trim(own_id), '') = '' THEN {derived} ELSE own_id END" if own_id else derived
        checked = (
            f"CASE WHEN is_short AND NOT contains(payload, {_UNCERTAIN}) AND strlen(payload) <= 200000 THEN payload END"
        )
        return (
            f"SELECT number, instant, device_id, {message_id} AS message_id, payload FROM "  # noqa: S608  quoted
            f"(SELECT number, instant, device_id, own_id, {checked} AS payload FROM ({prepared}))"
        )

    def _get_cell_name(self, column: str) -> str:
        return self._names[list(self._columns).index(column)] if column else ""

    def _build_instant_sql(self) -> str:
        cell, mapping = self._get_cell_name(self._mapper.mapping.timestamp), self._mapper.mapping
        if mapping.timestamp_format is not TimestampFormat.RFC3339:
            digits = 6 if mapping.timestamp_format is TimestampFormat.EPOCH_SECONDS else 3
            is_plain_number = f"regexp_full_match({cell}, '[0-9]{{1,13}}(\\.[0-9]{{1,{digits}}})?')"
            value = f"CAST(CAST({cell} AS DECIMAL(30, {digits})) * {10**digits} AS BIGINT)"
            return f"CASE WHEN {is_plain_number} THEN {value} END"
        instant = f"CASE WHEN {_build_time_condition(cell, _ZONED)} THEN epoch_us(TRY_CAST({cell} AS TIMESTAMPTZ))"
        if mapping.time_zone.upper() in {"UTC", "ETC/UTC"}:
            instant += f" WHEN {_build_time_condition(cell, _LOCAL)} THEN epoch_us(TRY_CAST({cell} AS TIMESTAMP))"
        return instant + " END"

    def _build_payload_sql(self) -> str:
        """Return SQL for the JSON payload; its properties are sorted by name, because message ids derive from it."""
        mapping = self._mapper.mapping
        special = {mapping.timestamp, mapping.device, mapping.message_id}
        names = (
            mapping.columns if mapping.columns is not None else [each for each in self._columns if each not in special]
        )
        members = [
            f"{quote_text(json.dumps(name, ensure_ascii=False) + ':')} || {self._build_value_sql(cell)}"
            for name, cell in ((name, self._get_cell_name(name)) for name in sorted(names))
        ]
        return f"'{{' || concat_ws(',', {', '.join(members)}) || '}}'" if members else "'{}'"

    def _build_value_sql(self, cell: str) -> str:
        """Return SQL that converts a cell to JSON text, or to null if the cell is blank."""
        number, is_candidate = cell, "true"
        if self._mapper.mapping.decimal == ",":
            number, is_candidate = f"replace({cell}, ',', '.')", f"NOT contains({cell}, '.')"
        is_short = f"{number} NOT LIKE '%0.0000%' AND {number} <> '-0' AND regexp_full_match({number}, '{_DECIMAL}')"
        is_long = f"contains({number}, '.') AND regexp_full_match({number}, '{_NUMBER}')"
        text = f"replace({cell}, '\\', '\\\\')"
        return (
            f"CASE WHEN {cell} IS NULL THEN NULL WHEN {is_candidate} AND {is_short} THEN {number} "
            f"WHEN {is_candidate} AND {is_long} THEN CAST(CAST({number} AS DOUBLE) AS VARCHAR) "
            f"WHEN {is_candidate} AND regexp_full_match({number}, '{_NUMBER_LIKE}') THEN {_UNCERTAIN} "
            f"""WHEN trim({cell}) = '' THEN NULL ELSE '"' || {text} || '"' END"""
        )


def _build_time_condition(cell: str, ends: Sequence[tuple[str, int]]) -> str:
    """Build the SQL condition that a CSV cell is a date-time with one of the given endings, such as ``Z``."""
    # DuckDB adds minutes above 59 to the hours of an offset.
    is_offset = f"(right({cell}, 1) = 'Z' OR (left(right({cell}, 5), 2) < '24' AND right({cell}, 2) < '60'))"
    patterns = (
        f"length({cell}) <= {longest} AND {cell} LIKE '____-__-__{separator}__:__:__{fraction}{end}'"
        for end, longest in ends
        for separator in "T "
        for fraction in ("", "._%")
    )
    checks = [f"{cell} >= '1' AND {cell} < ':'", f"({' OR '.join(patterns)})"]
    return " AND ".join([*checks, is_offset] if ends is _ZONED else checks)
