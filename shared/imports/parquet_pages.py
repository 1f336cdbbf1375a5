"""Sizes of the pages of a Parquet file, from the page headers (Apache Parquet format, ``PageHeader``).

Separate from ``parquet_sizes``, because the headers are in the compact protocol of Thrift, and pyarrow does not return
them. The footer states the same sizes, but nothing checks it: the decoder allocates what the page headers state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shared.imports.step_rows import RangeSource

MAX_STEP_PAGES: Final = 1_000_000
"""Maximum number of pages in the row groups that one step reads; they need few bytes, but time to read the headers."""
_WINDOW_BYTES: Final = 65_536
"""Number of bytes in which a page header is searched at first; few headers are larger."""
_BUFFER_BYTES: Final = 4 * 1024**2
"""Number of bytes that are read from a file at once: several pages of usual files, whose size is about 1 MiB."""
_MAX_HEADER_BYTES: Final = 16 * 1024**2
"""Maximum size of a page header, as in pyarrow."""
_MAX_DEPTH: Final = 4
_MAX_FIELD: Final = 100
_MAX_VARINT_BYTES: Final = 10
_PADDING_BYTES: Final = 100
"""Number of bytes that pyarrow reads after a column of an early writer, which stated a size that was too small."""

# Types of fields in the compact protocol of Thrift; page headers have no fields of other types.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 12

_PAGE_TYPE, _UNPACKED_SIZE, _PACKED_SIZE = 1, 2, 3
_DICTIONARY_PAGE: Final = 2
_HEADER_FIELDS: Final[Mapping[int, tuple[int, int]]] = {0: (5, 2), _DICTIONARY_PAGE: (7, 2), 3: (8, 4)}
"""By page type: the field with the header of the type, and the field with the encoding in this header."""
_VALUE_COUNT: Final = 1
_ENCODINGS: Final[Mapping[int, str]] = {
    2: "PLAIN_DICTIONARY",
    6: "DELTA_LENGTH_BYTE_ARRAY",
    7: "DELTA_BYTE_ARRAY",
    8: "RLE_DICTIONARY",
}
"""Names of the encodings that change how much memory values need."""


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """Pages of one column in a row group.

    Attributes:
        unpacked_bytes: size of all pages in bytes before compression, including their headers.
        value_count: number of values in the data pages.
        encodings: encodings of the pages that change how much memory values need.
        page_count: number of pages.
        dictionary_value_count: number of values in the dictionary pages.
    """

    unpacked_bytes: int
    value_count: int
    encodings: frozenset[str]
    page_count: int = 0
    dictionary_value_count: int = 0


class BufferedSource:
    """RangeSource that reads at least 4 MiB of a file at once, so that several pages and columns are read together.

    Args:
        source: the file.
    """

    def __init__(self, source: RangeSource) -> None:
        self._source = source
        self._start = 0
        self._buffer = b""

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._source.size

    def read(self, start: int, size: int) -> bytes:
        """Return ``size`` bytes from the byte position ``start`` on; fewer at the end of the file."""
        offset = start - self._start
        if not 0 <= offset <= offset + size <= len(self._buffer):
            # If the read fails, the position still belongs to the buffer.
            self._buffer = self._source.read(start, max(size, _BUFFER_BYTES))
            self._start, offset = start, 0
        return self._buffer[offset : offset + size]


class TooManyPagesError(Exception):
    """A column has more pages than the limit."""


class _TruncatedError(Exception):
    """The bytes end within a page header."""


def find_column_padding(metadata: pq.FileMetaData) -> int:
    """Return the number of bytes after each column that the decoder also reads.

    The number is 0 except for the writer ``parquet-mr``; pyarrow reads them for its versions before 1.2.9. For later
    versions they change nothing, because the pages of a column have all its values.

    Args:
        metadata: footer of the file.
    """
    return _PADDING_BYTES if "parquet-mr" in (metadata.created_by or "").lower() else 0


def read_column_pages(
    source: RangeSource, column: pq.ColumnChunkMetaData, max_pages: int = MAX_STEP_PAGES, padding: int = 0
) -> ColumnPages:
    """Read the headers of the pages of a column that the decoder would read.

    Args:
        source: the file.
        column: description of the column in a row group, from the footer.
        max_pages: number of pages that other columns leave of the step's limit.
        padding: result of :func:`find_column_padding` for the file.

    Raises:
        pa.ArrowInvalid: a page header is not valid.
        TooManyPagesError: the column has more than ``max_pages`` pages.
    """
    start, dictionary = column.data_page_offset, column.dictionary_page_offset
    if dictionary is not None and 0 < dictionary < start:
        start = dictionary
    reader = _HeaderReader(source, start, start + column.total_compressed_size + padding)
    unpacked = values = dictionary_values = count = 0
    encodings = set[str]()
    # The decoder ignores pages after the number of values that the footer states.
    while values < column.num_values and not reader.is_at_end:
        count += 1
        if count > max_pages:
            raise TooManyPagesError
        header, header_bytes = reader.read_header_and_skip_page()
        unpacked += header_bytes + header[_UNPACKED_SIZE]
        number, encoding_field = _HEADER_FIELDS.get(header[_PAGE_TYPE], (0, 0))
        of_type = header.get(number, {})
        if header[_PAGE_TYPE] == _DICTIONARY_PAGE:
            dictionary_values += of_type.get(_VALUE_COUNT, 0)
        else:
            values += of_type.get(_VALUE_COUNT, 0)
        encodings.add(_ENCODINGS.get(of_type.get(encoding_field, -1), ""))
    return ColumnPages(unpacked, values, frozenset(encodings - {""}), count, dictionary_values)


class _HeaderReader:
    """Reader of the page headers in a range of a file.

    Args:
        source: the file.
        start: position of the first page.
        end: end of the last page.
    """

    def __init__(self, source: RangeSource, start: int, end: int) -> None:
        self._source = source
        self._position = start
        self._end = min(end, source.size)
        self._window_start = start
        self._window = b""
        if not 0 <= start <= end:
            raise _build_invalid_header_error()

    @property
    def is_at_end(self) -> bool:
        """True if there are no further pages."""
        return self._position >= self._end

    def read_header_and_skip_page(self) -> tuple[dict[int, Any], int]:
        """Return the fields of the next page header and its size in bytes, and move to the page after it."""
        try:
            header, size = self._parse_header()
        except _TruncatedError:
            raise _build_invalid_header_error() from None
        _require_valid_header(header)
        self._position += size + header[_PACKED_SIZE]
        return header, size

    def _parse_header(self) -> tuple[dict[int, Any], int]:
        offset = self._position - self._window_start
        for window_bytes in (0, _WINDOW_BYTES, _MAX_HEADER_BYTES):
            if window_bytes:
                size = min(window_bytes, self._end - self._position)
                self._window_start, self._window, offset = self._position, self._source.read(self._position, size), 0
            parser = _StructParser(self._window, offset)
            try:
                return parser.parse_struct(), parser.offset - offset
            except _TruncatedError:
                continue
        raise _TruncatedError


class _StructParser:
    """Parser of a structure in the compact protocol of Thrift; it returns only 32-bit integers and structures.

    Attributes:
        offset: position of the next byte in the data.
    """

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self.offset = offset

    def parse_struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields by their numbers. Like pyarrow, the last field with a number counts."""
        if depth > _MAX_DEPTH:
            raise _build_invalid_header_error()
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._read_byte()) != 0:
            number = number + (head >> 4) if head >> 4 else _decode_zigzag(self._read_varint())
            if not 0 <= number <= _MAX_FIELD:
                raise _build_invalid_header_error()
            value = self._parse_value(head & 0xF, depth)
            if value is not None:
                fields[number] = value
        return fields

    def _parse_value(self, kind: int, depth: int) -> Any:
        """Return a 32-bit integer or a structure; skip a value of another type, and return None."""
        if kind == _I32:
            return _decode_zigzag(self._read_varint() & 0xFFFFFFFF)
        if kind == _STRUCT:
            return self.parse_struct(depth + 1)
        if kind in {_I16, _I64}:
            self._read_varint()
        elif kind == _BINARY:
            self._skip(self._read_varint())
        elif kind in {_BYTE, _DOUBLE}:
            self._skip(1 if kind == _BYTE else 8)
        elif kind not in {_TRUE, _FALSE}:
            raise _build_invalid_header_error()
        return None

    def _read_varint(self) -> int:
        value = 0
        for place in range(_MAX_VARINT_BYTES):
            byte = self._read_byte()
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:  # noqa: PLR2004  the highest bit says that another byte follows
                return value
        raise _build_invalid_header_error()

    def _read_byte(self) -> int:
        self._skip(1)
        return self._data[self.offset - 1]

    def _skip(self, size: int) -> None:
        if self.offset + size > len(self._data):
            raise _TruncatedError
        self.offset += size


def _require_valid_header(header: Mapping[int, Any]) -> None:
    """Check the types and signs of the fields that are used; raise an error if one is invalid or missing."""
    numbers = [header.get(field) for field in (_PAGE_TYPE, _UNPACKED_SIZE, _PACKED_SIZE)]
    for field, encoding_field in _HEADER_FIELDS.values():
        of_type = header.get(field, {})
        if not isinstance(of_type, dict):
            raise _build_invalid_header_error()
        numbers += [of_type.get(_VALUE_COUNT, 0), of_type.get(encoding_field, 0)]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise _build_invalid_header_error()


def _decode_zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _build_invalid_header_error() -> pa.ArrowInvalid:
    return pa.ArrowInvalid("a page header is not valid")
