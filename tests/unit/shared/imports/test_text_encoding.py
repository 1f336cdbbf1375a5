"""Tests of recognising the encoding of uploaded text files."""

import codecs

import pytest

from shared.imports.row_mapping import FileRejectedError
from shared.imports.text_encoding import detect_encoding


@pytest.mark.parametrize(
    ("head", "name", "start"),
    [
        (b"time,value\n", "utf-8", 0),
        (codecs.BOM_UTF8 + b"time", "utf-8", 3),
        (codecs.BOM_UTF16_LE + "time".encode("utf-16-le"), "utf-16-le", 2),
        (codecs.BOM_UTF16_BE + "time".encode("utf-16-be"), "utf-16-be", 2),
    ],
)
def test_the_encoding_of_a_text_file_is_recognised(head: bytes, name: str, start: int) -> None:
    """A byte order mark determines the encoding of a file; without it, the encoding is UTF-8."""
    found = detect_encoding(head)
    assert (found.name, found.start) == (name, start)
    text = "Kühl\n"
    assert found.to_utf8(text.encode(name)) == text.encode()
    assert found.count_file_bytes(text.encode()) == len(text.encode(name))


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"", "empty"),
        (b"PAR1....", "format parquet"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"PK\x03\x04", "compressed"),
        (codecs.BOM_UTF32_LE + b"a\0\0\0", "UTF-32"),
        ("time".encode("utf-16-le"), "without a byte order mark"),
    ],
)
def test_files_that_are_not_text_are_rejected_with_advice(head: bytes, reason: str) -> None:
    """A file that is empty, binary, compressed or in another encoding is rejected with advice."""
    with pytest.raises(FileRejectedError, match=reason):
        detect_encoding(head)
