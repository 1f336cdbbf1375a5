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
    assert found.to_utf8(text.encode(name), is_last=True) == text.encode()
    assert found.count_file_bytes(text.encode()) == len(text.encode(name))


@pytest.mark.parametrize("incomplete", [b"\x3d\xd8", b"\x41"])
def test_an_incomplete_character_at_the_end_of_a_file_is_no_text(incomplete: bytes) -> None:
    """An incomplete character of UTF-16 is left out before more bytes, and is invalid text at the end of a file."""
    encoding = detect_encoding(codecs.BOM_UTF16_LE)
    raw = "abc".encode("utf-16-le") + incomplete
    assert encoding.to_utf8(raw, is_last=False) == b"abc"
    with pytest.raises(UnicodeDecodeError):
        encoding.to_utf8(raw, is_last=True).decode()


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"", "empty"),
        (b"PAR1....", "format parquet"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"PK\x03\x04", "compressed"),
        (codecs.BOM_UTF32_LE + b"a\0\0\0", "UTF-32"),
        ("time".encode("utf-16-le"), "without a byte order mark"),
        ("time,Größe,温度\n".encode("utf-16-le"), "without a byte order mark"),
        ("time,温度計温度計温度計\n".encode("utf-16-be"), "without a byte order mark"),
    ],
)
def test_files_that_are_not_text_are_rejected_with_advice(head: bytes, reason: str) -> None:
    """A file that is empty, binary, compressed or in another encoding is rejected with advice."""
    with pytest.raises(FileRejectedError, match=reason):
        detect_encoding(head)


def test_a_nul_character_does_not_make_a_file_utf16() -> None:
    """UTF-8 text may have NUL characters, also if the sample ends within a character."""
    for head in (b"time,x\n2026-01-05T08:00:00Z,a\0b\n", "time,ü\0".encode() + b"x" * 4088 + "€".encode()):
        assert detect_encoding(head).name == "utf-8"
