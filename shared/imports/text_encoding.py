"""Encoding of uploaded text files: UTF-8, or UTF-16 with a byte order mark."""

import codecs
from dataclasses import dataclass
from typing import Final

from shared.imports.row_mapping import FileRejectedError
from shared.imports.step_rows import RangeSource

_SAMPLE_BYTES: Final = 4096
_MOST_BYTES_PER_NUL: Final = 4
"""Maximum number of bytes per NUL byte in UTF-16 text that is also valid UTF-8, which is mostly ASCII characters."""
_SEARCHED_BYTES: Final = 8 * 1024 * 1024
"""Number of bytes in which the end of a line is searched at once."""
_NOT_UTF8: Final = b"\xff"
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """Encoding of an uploaded text file.

    Attributes:
        name: name of the Python codec.
        start: byte position of the first character, after the byte order mark.
    """

    name: str
    start: int

    @property
    def bytes_per_ascii_character(self) -> int:
        """Number of bytes of an ASCII character."""
        return 1 if self.name == "utf-8" else 2

    def to_utf8(self, raw: bytes, *, is_last: bool) -> bytes:
        """Convert bytes of an imported file to UTF-8; the bytes of a UTF-8 file are returned unchanged.

        An unpaired surrogate of UTF-16, or an incomplete character at the end of the file, becomes bytes that are not
        UTF-8, so that the row is rejected like a damaged row of a UTF-8 file. An incomplete character at the end of an
        earlier part is left out; the next part must begin with it.

        Args:
            raw: part of the file, from the start of a character.
            is_last: whether the file ends with this part.
        """
        if self.name == "utf-8":
            return raw
        decoder = codecs.getincrementaldecoder(self.name)("surrogatepass")
        text = decoder.decode(raw).encode("utf-8", "surrogatepass")
        incomplete, _ = decoder.getstate()
        return text + _NOT_UTF8 if is_last and incomplete else text

    def count_file_bytes(self, utf8: bytes) -> int:
        """Return the number of bytes that a text takes in the file's encoding.

        Args:
            utf8: a part of a result of :meth:`to_utf8`.
        """
        if self.name == "utf-8":
            return len(utf8)
        return len(utf8.decode("utf-8", "surrogatepass").encode(self.name, "surrogatepass"))


def find_next_line(source: RangeSource, encoding: TextEncoding, position: int) -> int:
    """Return the byte position at which the next line starts; the size of the file if there is no further line.

    Args:
        source: the uploaded file.
        encoding: encoding of the file.
        position: byte position of a character in the current line.
    """
    while position < source.size:
        raw = source.read(position, _SEARCHED_BYTES)
        is_last = position + len(raw) >= source.size
        text = encoding.to_utf8(raw, is_last=is_last)
        if end := text.find(b"\n") + 1:
            return position + encoding.count_file_bytes(text[:end])
        if is_last:
            break
        position += encoding.count_file_bytes(text)
    return source.size


def detect_encoding(file_start: bytes) -> TextEncoding:
    """Detect the encoding of a text file from its first bytes.

    Raises:
        FileRejectedError: the file is empty, or is not text in a supported encoding.
    """
    if not file_start:
        raise FileRejectedError("The file is empty.")
    if file_start.startswith(b"PAR1"):
        raise FileRejectedError("The file is a Parquet file; create the import with format parquet.")
    if file_start.startswith((b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")):
        raise FileRejectedError("The file is compressed; upload it uncompressed.")
    if file_start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise FileRejectedError("The file is UTF-32 text; save it as UTF-8.")
    for mark, name in _MARKS:
        if file_start.startswith(mark):
            return TextEncoding(name, len(mark))
    if _is_likely_utf16(file_start[:_SAMPLE_BYTES]):
        raise FileRejectedError(
            "The file is not UTF-8 text; it may be UTF-16 without a byte order mark. Save it as UTF-8."
        )
    return TextEncoding("utf-8", 0)


def _is_likely_utf16(sample: bytes) -> bool:
    """Return whether text without a byte order mark is not UTF-8, or has so many NUL bytes that it must be UTF-16."""
    nul_bytes = sample.count(0)
    if not nul_bytes:
        return False
    try:
        # The last character of the sample may be incomplete.
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return True
    return nul_bytes * _MOST_BYTES_PER_NUL >= len(sample)
