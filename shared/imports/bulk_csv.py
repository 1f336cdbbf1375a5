"""Fast conversion of plain CSV text to telemetry messages with DuckDB.

A row is converted here only if the result certainly equals the result of ``RowMapper``. Other rows are
returned by number, and the caller converts them one by one with ``RowMapper``. The text must be plain; see
:func:`is_plain_csv`.

Separate from ``csv_reader`` because it needs DuckDB, and converts only texts without special cases.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from shared.catalog.models import TimestampFormat
from shared.cold_data.engine import quote_sql_text
from shared.imports.row_mapping import RowMapper
from shared.imports.step_rows import MAX_ROW_BYTES
from shared.timestamps import to_unix_microseconds

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
"""Pattern for numbers of at most 15 digits in their shortest form, and for numbers below 0.0001 in a longer form."""
_NUMBER: Final = r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?"
_NUMBER_LIKE: Final = r"\s*-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\s*"
_MEMORY: Final = "128MB"
_BLOCK_BYTES: Final = 4 * 1024 * 1024
"""Size of the parts of a step that threads parse; each part has distinct cells of its own."""
_MOST_THREADS: Final = 4
_LONGEST_PAYLOAD: Final = 200_000
_UNCERTAIN: Final = "chr(1)"
# DuckDB also reads single digits, spaces instead of digits, and the hour 24, and adds minutes above 59 to an offset.
_HOUR_AND_MINUTE: Final = "([01][0-9]|2[0-3]):[0-5][0-9]"
_LOCAL: Final = rf"[1-9][0-9]{{3}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_HOUR_AND_MINUTE}:[0-5][0-9](\.[0-9]{{1,6}})?"
"""Pattern for a time without a zone, with a precision of at most a microsecond."""
_ZONED: Final = rf"{_LOCAL}(Z|[+-]{_HOUR_AND_MINUTE})"


@dataclass(frozen=True, slots=True)
class BulkRows:
    """Result of converting a CSV text: messages, and the rows that need slow conversion.

    Attributes:
        rows: number of rows of the text.
        messages: messages with the columns ``step_rows.SCHEMA``.
        others: cells of the rows that ``RowMapper`` must convert one by one, by row number.
    """

    rows: int
    messages: pa.Table
    others: dict[int, list[str]]


def is_plain_csv(text: bytes, delimiter: str) -> bool:
    """Return whether a CSV text can be converted in bulk.

    All quotes must enclose whole cells, and there must be neither unusual white space nor rows that are too long.
    """
    if _has_long_line(text):
        return False
    if len(text.translate(None, _CONTROLS)) != len(text):
        return False
    # The search for one character is much faster than counting.
    if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
        return False
    if delimiter != "\t" and b"\t" in text:
        return False
    if b'"' in text and not _has_quotes_only_around_cells(text, delimiter):
        return False
    return text.isascii() or not any(each in text for each in _WIDE_SPACES)


def _has_long_line(text: bytes) -> bool:
    """Return whether a line has more than ``MAX_ROW_BYTES``, with few searches in the text."""
    start = 0
    while len(text) - start > MAX_ROW_BYTES:
        start = text.rfind(b"\n", start, start + MAX_ROW_BYTES + 1) + 1
        if not start:
            return True
    return False


def _has_quotes_only_around_cells(text: bytes, delimiter: str) -> bool:
    """Return whether all quotes enclose whole cells, and no quoted cell contains a quote, line break or tab."""
    mark = delimiter.encode()
    # A quote opens a cell after a line break or delimiter, and closes it before one; the text between has no break.
    framed = b"\n%b\n" % text.replace(b"\r\n", b"\n")
    parts = framed.split(b'"')
    outside, inside = parts[::2], parts[1::2]
    if len(outside) != len(inside) + 1 or any(b"\n" in cell or b"\r" in cell or b"\t" in cell for cell in inside):
        return False
    edges = (mark, b"\n")
    return all(part.endswith(edges) for part in outside[:-1]) and all(part.startswith(edges) for part in outside[1:])


def open_conversion_engine() -> "duckdb.DuckDBPyConnection":
    """Return a DuckDB engine with bounded memory that has no access to files."""
    import duckdb  # noqa: PLC0415  loading it takes long

    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _MEMORY,
        "threads": min(_MOST_THREADS, os.cpu_count() or 1),
        # Rows of results are combined with rows of the file by their positions.
        "preserve_insertion_order": True,
        "enable_external_access": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    engine = duckdb.connect(":memory:", config=limits)
    engine.execute("SET TimeZone = 'UTC'")
    return engine


class ValueColumn(NamedTuple):
    """Column that is computed from the cells of one column of the file, once for each distinct cell.

    Attributes:
        name: name of the computed column.
        cell: name of the column with the cells; empty if every row has the default value.
        sql: SQL expression for the value.
        default: value that replaces null, for example for an empty cell; None to leave null.
    """

    name: str
    cell: str
    sql: str
    default: str | None = None


class BulkConverter:
    """Converts plain CSV text to messages with SQL.

    Cells of telemetry repeat often, so each distinct cell of a column is converted once, and rows refer to the result.

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
        self._members = self._build_payload_columns()
        self._values = [*self._build_time_columns(), *self._build_id_columns(), *self._members]
        computed = ", ".join(f"{each.sql} AS {each.name}" for each in self._values if each.cell)
        self._value_query = f"SELECT {computed} FROM cells"  # noqa: S608  the texts of the mapping are quoted
        self._row_query = self._build_payload_and_id_query()
        # In these columns most cells differ, so that a search for distinct cells has no use.
        self._varied = set[str]()

    def try_convert(self, text: bytes, first_row_number: int) -> BulkRows | None:
        """Convert complete CSV lines; return None if a line has a wrong number of cells or is not UTF-8.

        Args:
            text: plain CSV text without the header.
            first_row_number: number of the text's first row in the file.
        """
        table = self._try_parse_csv_text(text)
        if table is None:
            return None
        values = self._convert_cells_to_value_columns(table)
        converted = self._run_query_on_table(self._row_query, "converted", values)
        device_ids = values.column("device_id")
        certain = self._mark_safely_converted_rows(values.column("instant"), device_ids, converted.column("payload"))
        messages = pa.table(
            {
                "number": _build_row_numbers(first_row_number, table.num_rows),
                "timestamp": values.column("instant").cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
                "device_id": device_ids,
                "message_id": converted.column("message_id"),
                "payload": converted.column("payload"),
            }
        )
        if pc.all(certain).as_py():
            return BulkRows(table.num_rows, messages, {})
        return BulkRows(
            table.num_rows,
            messages.filter(certain),
            self._map_uncertain_rows_to_cells(table, certain, first_row_number),
        )

    def _run_query_on_table(self, query: str, table_name: str, table: pa.Table) -> pa.Table:
        """Run an SQL query on a table, which the query calls ``table_name``; the result has the table's row order."""
        self._engine.register(table_name, table)
        try:
            return self._engine.sql(query).to_arrow_table()
        finally:
            self._engine.unregister(table_name)

    def _convert_cells_to_value_columns(self, table: pa.Table) -> pa.Table:
        """Compute the columns ``self._values`` (time, ids, payload properties) from a table with the file's cells."""
        distinct: dict[str, pa.Array] = {}
        indices: dict[str, pa.Array] = {}
        for name in {each.cell for each in self._values if each.cell}:
            column = table.column(name).combine_chunks()
            if isinstance(column, pa.DictionaryArray):
                distinct[name], indices[name] = column.dictionary, column.indices
                if len(column.dictionary) > len(column) // 2:
                    self._varied.add(name)
            else:
                distinct[name] = column
        longest = max(map(len, distinct.values()))
        cells = pa.table({name: _extend_with_nulls(values, longest) for name, values in distinct.items()})
        found = self._run_query_on_table(self._value_query, "cells", cells)
        columns = {}
        for name, cell, _, default in self._values:
            if not cell:
                columns[name] = pa.repeat(pa.scalar(default, pa.string()), table.num_rows)
                continue
            values = found.column(name)
            if cell in indices:
                values = values.slice(0, len(distinct[cell])).combine_chunks()
                if default is None and values.type == pa.string():
                    # A copy of the text for each row would take much memory.
                    columns[name] = pa.DictionaryArray.from_arrays(indices[cell], values)
                    continue
                values = values.take(indices[cell])
            columns[name] = values if default is None else values.fill_null(default)
        return pa.table(columns)

    def _try_parse_csv_text(self, text: bytes) -> pa.Table | None:
        is_valid = True

        def handle_invalid_row(_: object) -> str:
            """Record that the text has an invalid row; return pyarrow's instruction to skip the row."""
            nonlocal is_valid
            is_valid = False
            return "skip"

        repeated = {each.cell for each in self._values} - self._varied
        distinct = pa.dictionary(pa.int32(), pa.string())
        try:
            table = pa_csv.read_csv(
                pa.py_buffer(text),
                read_options=pa_csv.ReadOptions(column_names=self._names, block_size=_BLOCK_BYTES),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self._mapper.mapping.delimiter,
                    quote_char='"',
                    double_quote=False,
                    invalid_row_handler=handle_invalid_row,
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types={name: distinct if name in repeated else pa.string() for name in self._names},
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

    def _mark_safely_converted_rows(
        self, instants: pa.ChunkedArray, device_ids: pa.ChunkedArray, payloads: pa.ChunkedArray
    ) -> pa.ChunkedArray:
        """Return for each row whether its result certainly equals the result of ``RowMapper``.

        ``RowMapper`` converts the other rows again.
        """
        certain = pc.and_(pc.is_valid(instants), pc.less_equal(instants, to_unix_microseconds(self._mapper.latest)))
        certain = pc.and_(certain, pc.is_valid(payloads))
        device_check = self._mapper.device_check
        if device_check is not None:
            known = [each for each in device_ids.unique().to_pylist() if device_check(each)]
            certain = pc.and_(certain, pc.is_in(device_ids, pa.array(known, pa.string())))
        return pc.fill_null(certain, fill_value=False)

    def _map_uncertain_rows_to_cells(
        self, table: pa.Table, is_certain_row: pa.ChunkedArray, first_row_number: int
    ) -> dict[int, list[str]]:
        numbers = pc.indices_nonzero(pc.invert(is_certain_row)).to_pylist()
        if not numbers:
            return {}
        rows = table.take(pa.array(numbers, pa.int64()))
        cells = zip(
            *(rows.column(name).cast(pa.string()).fill_null("").to_pylist() for name in self._names), strict=True
        )
        return {first_row_number + number: list(row) for number, row in zip(numbers, cells, strict=True)}

    def _build_time_columns(self) -> list[ValueColumn]:
        """Return the columns with the time: in microseconds, and as the text from which message ids are derived."""
        cell, instant = (
            self._get_internal_column_name(self._mapper.mapping.timestamp),
            self._build_instant_microseconds_sql(),
        )
        text = f"""strftime(make_timestamp({instant}), '%Y-%m-%dT%H:%M:%S.%fZ') || '",'"""
        return [ValueColumn("instant", cell, instant), ValueColumn("time_text", cell, text)]

    def _build_id_columns(self) -> list[ValueColumn]:
        """Return the columns with the device id, the device id as JSON text, and the message id of the row, if mapped.

        The JSON text is a part of the text from which missing message ids are derived. An id that is too long becomes
        ``_UNCERTAIN``, so that ``RowMapper`` converts its row.
        """
        lookup, text = self._mapper.connection, json.dumps(self._mapper.connection, ensure_ascii=False) + ',"'
        device = self._get_internal_column_name(self._mapper.mapping.device)
        own_id = self._get_internal_column_name(self._mapper.mapping.message_id)
        device_id = f"CASE WHEN trim({device}) = '' THEN {quote_sql_text(lookup)} ELSE {_build_id_sql(device)} END"
        values = [
            ValueColumn("device_id", device, device_id if device else "NULL", lookup),
            ValueColumn("device_text", device, f"to_json({device_id})::VARCHAR || ',\"'" if device else "NULL", text),
        ]
        if own_id:
            values.append(
                ValueColumn("own_id", own_id, f"CASE WHEN trim({own_id}) <> '' THEN {_build_id_sql(own_id)} END")
            )
        return values

    def _build_payload_columns(self) -> list[ValueColumn]:
        """Return the columns with the JSON properties of the payload, sorted by name as derived message ids require."""
        mapping = self._mapper.mapping
        special = {mapping.timestamp, mapping.device, mapping.message_id}
        names = (
            mapping.columns if mapping.columns is not None else [each for each in self._columns if each not in special]
        )
        members = []
        for number, name in enumerate(sorted(names)):
            cell = self._get_internal_column_name(name)
            sql = f"{quote_sql_text(json.dumps(name, ensure_ascii=False) + ':')} || {self._build_json_value_sql(cell)}"
            members.append(ValueColumn(f"member{number}", cell, sql))
        return members

    def _build_payload_and_id_query(self) -> str:
        """Return SQL that builds payloads and message ids from the columns ``self._values``."""
        names = ", ".join(each.name for each in self._members)
        payload = f"concat('{{', concat_ws(',', {names}), '}}')" if names else "'{}'"
        start = quote_sql_text("[" + json.dumps(self._mapper.connection, ensure_ascii=False) + ",")
        message_id = f"sha256(concat({start}, device_text, time_text, payload, ']'))[:32]"
        is_certain = f"NOT contains(payload, {_UNCERTAIN}) AND strlen(payload) <= {_LONGEST_PAYLOAD}"
        is_certain += f" AND device_id <> {_UNCERTAIN}"
        if any(each.name == "own_id" for each in self._values):
            message_id = f"coalesce(own_id, {message_id})"
            is_certain += f" AND coalesce(own_id, '') <> {_UNCERTAIN}"
        return (
            f"SELECT {message_id} AS message_id, CASE WHEN {is_certain} THEN payload END AS payload "  # noqa: S608  quoted
            f"FROM (SELECT *, {payload} AS payload FROM converted)"
        )

    def _get_internal_column_name(self, column: str) -> str:
        return self._names[list(self._columns).index(column)] if column else ""

    def _build_instant_microseconds_sql(self) -> str:
        cell, mapping = self._get_internal_column_name(self._mapper.mapping.timestamp), self._mapper.mapping
        if mapping.timestamp_format is not TimestampFormat.RFC3339:
            digits = 6 if mapping.timestamp_format is TimestampFormat.EPOCH_SECONDS else 3
            # Longer numbers can exceed the range of times in DuckDB, which then fails instead of returning null.
            is_plain_number = f"regexp_full_match({cell}, '[0-9]{{1,{18 - digits}}}(\\.[0-9]{{1,{digits}}})?')"
            value = f"CAST(CAST({cell} AS DECIMAL(30, {digits})) * {10**digits} AS BIGINT)"
            return f"CASE WHEN {is_plain_number} THEN {value} END"
        instant = f"CASE WHEN regexp_full_match({cell}, '{_ZONED}') THEN epoch_us(TRY_CAST({cell} AS TIMESTAMPTZ))"
        if mapping.time_zone.upper() in {"UTC", "ETC/UTC"}:
            instant += f" WHEN regexp_full_match({cell}, '{_LOCAL}') THEN epoch_us(TRY_CAST({cell} AS TIMESTAMP))"
        return instant + " END"

    def _build_json_value_sql(self, cell_column: str) -> str:
        """Return SQL that converts a cell to JSON text, or to null if the cell is blank."""
        number, is_candidate = cell_column, "true"
        if self._mapper.mapping.decimal == ",":
            number, is_candidate = f"replace({cell_column}, ',', '.')", f"NOT contains({cell_column}, '.')"
        is_short = f"{number} NOT LIKE '%0.0000%' AND {number} <> '-0' AND regexp_full_match({number}, '{_DECIMAL}')"
        is_long_number = f"contains({number}, '.') AND regexp_full_match({number}, '{_NUMBER}')"
        text = f"replace({cell_column}, '\\', '\\\\')"
        return (
            f"CASE WHEN {cell_column} IS NULL THEN NULL WHEN {is_candidate} AND {is_short} THEN {number} "
            f"WHEN {is_candidate} AND {is_long_number} THEN CAST(CAST({number} AS DOUBLE) AS VARCHAR) "
            f"WHEN {is_candidate} AND regexp_full_match({number}, '{_NUMBER_LIKE}') THEN {_UNCERTAIN} "
            f"""WHEN trim({cell_column}) = '' THEN NULL ELSE '"' || {text} || '"' END"""
        )


def _build_row_numbers(first: int, count: int) -> pa.Array:
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=first - 1)


def _extend_with_nulls(values: pa.Array, length: int) -> pa.Array:
    return pa.concat_arrays([values, pa.nulls(length - len(values), values.type)]) if len(values) < length else values


def _build_id_sql(cell_column: str) -> str:
    """Build the SQL expression that returns the id in a cell, or ``_UNCERTAIN`` if the id is too long."""
    return f"CASE WHEN length({cell_column}) > 256 THEN {_UNCERTAIN} ELSE {cell_column} END"
