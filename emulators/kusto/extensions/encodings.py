"""KQL functions over encoded texts: base64, gzip, zlib, punycode, XML, command lines; and functions over bags.

The size of a decompressed text is limited.
"""

import base64
import binascii
import shlex
import struct
import uuid
import zlib
from collections.abc import Callable
from typing import Any
from xml.parsers import expat
from zoneinfo import available_timezones

from emulators.kusto.extensions.scalar_calls import ScalarCall, build_functions, install_calls
from emulators.kusto.library_errors import RUNAWAY
from emulators.kusto.python_functions import FunctionFailure

MAX_DECOMPRESSED_BYTES = 16_777_216
MAX_XML_CHARACTERS = 1_048_576
"""Maximum length of an XML text in Data Explorer; the result of a longer text is null."""
_MAX_XML_LEVELS = 100
_MAX_STORED_BLOCK = 65_535
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_ZLIB_HEADER = b"\x78\x01"
_RAW = -15


def _decode_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _decode_to_array(text: str) -> list[int] | None:
    try:
        return list(_decode_base64(text))
    except binascii.Error:
        return None


def _encode_from_array(values: list[int]) -> str:
    return base64.b64encode(bytes(values)).decode()


def _compress_with_deflate(data: bytes) -> bytes:
    """Compress data with deflate as .NET does: data that would not become shorter is stored uncompressed."""
    compressor = zlib.compressobj(wbits=_RAW)
    packed = compressor.compress(data) + compressor.flush()
    if len(packed) < len(data) or len(data) > _MAX_STORED_BLOCK:
        return packed
    return b"\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data


def _compress_gzip(text: str) -> str:
    data = text.encode()
    end = struct.pack("<II", zlib.crc32(data), len(data))
    return base64.b64encode(_GZIP_HEADER + _compress_with_deflate(data) + end).decode()


def _compress_zlib(text: str) -> str:
    data = text.encode()
    return base64.b64encode(
        _ZLIB_HEADER + _compress_with_deflate(data) + struct.pack(">I", zlib.adler32(data))
    ).decode()


def _build_decompression(name: str, window: int) -> Callable[[str], str]:
    def decompress(text: str) -> str:
        try:
            found = zlib.decompressobj(window).decompress(_decode_base64(text), MAX_DECOMPRESSED_BYTES + 1)
        except (zlib.error, binascii.Error):
            return ""
        if len(found) > MAX_DECOMPRESSED_BYTES:
            raise FunctionFailure(RUNAWAY, f"{name}() would create a text of more than {MAX_DECOMPRESSED_BYTES} bytes")
        return found.decode("utf-8", "replace")

    return decompress


def _encode_domain(text: str) -> str:
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in text.split(".")
    )


def _decode_domain(text: str) -> str:
    return ".".join(
        label[4:].encode().decode("punycode") if label.startswith("xn--") else label for label in text.split(".")
    )


class _XmlReader:
    """Handler of an XML parser that builds the JSON value of a document."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._stack: list[tuple[dict[str, Any], list[str]]] = [(self.root, [])]

    def parse(self, text: str) -> dict[str, Any]:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start_element
        parser.EndElementHandler = self._end_element
        parser.CharacterDataHandler = self._add_text
        parser.EntityDeclHandler = self._reject_entities
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            raise ValueError("not XML") from error
        return self.root

    def _add_text(self, data: str) -> None:
        self._stack[-1][1].append(data)

    def _reject_entities(self, *_: Any) -> None:
        raise ValueError("XML with entities could expand without limit")

    def _start_element(self, _name: str, attributes: dict[str, str]) -> None:
        if len(self._stack) > _MAX_XML_LEVELS:
            raise ValueError("XML is nested too deeply")
        self._stack.append(({f"@{key}": value for key, value in attributes.items()}, []))

    def _end_element(self, name: str) -> None:
        members, parts = self._stack.pop()
        text = "".join(parts).strip()
        attributes = {key: each for key, each in members.items() if key.startswith("@")}
        value: Any = {**attributes, "#text": text, **members} if text and members else members or text or None
        parent = self._stack[-1][0]
        if name not in parent:
            parent[name] = value
        elif isinstance(parent[name], list):
            parent[name].append(value)
        else:
            parent[name] = [parent[name], value]


def _parse_xml(text: str) -> Any:
    if len(text) > MAX_XML_CHARACTERS:
        return None
    return _XmlReader().parse(text.strip())


def _parse_command_line(text: str, parser: str) -> list[str] | None:
    if parser.lower() != "windows":
        raise ValueError(parser)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.quotes, lexer.escape, lexer.commenters = True, '"', "", ""
    return list(lexer) or None


def _list_paths(value: Any) -> list[str]:
    paths: dict[str, None] = {}

    def visit(node: Any, path: str) -> None:
        if path:
            paths[path] = None
        if isinstance(node, dict):
            for key, inner in node.items():
                visit(inner, f"{path}['{key}']")
        elif isinstance(node, list):
            for inner in node:
                visit(inner, f"{path}[0]")

    visit(value, "")
    return list(paths)


def _compute_jaccard_index(one: list[Any], other: list[Any]) -> float | None:
    left, right = ({repr(each) for each in values} for values in (one, other))
    union = left | right
    return len(left & right) / len(union) if union else None


CALLS = (
    ScalarCall("base64_decode_toarray", _decode_to_array, "string", "dynamic"),
    ScalarCall("base64_encode_fromarray", _encode_from_array, "dynamic", "string", ""),
    ScalarCall("base64_decode_toguid", lambda text: str(uuid.UUID(bytes_le=_decode_base64(text))), "string", "guid"),
    ScalarCall(
        "base64_encode_fromguid", lambda text: base64.b64encode(uuid.UUID(text).bytes_le).decode(), "guid", "string", ""
    ),
    ScalarCall("gzip_compress_to_base64_string", _compress_gzip, "text", "string", ""),
    ScalarCall("zlib_compress_to_base64_string", _compress_zlib, "text", "string", ""),
    ScalarCall(
        "gzip_decompress_from_base64_string",
        _build_decompression("gzip_decompress_from_base64_string", 31),
        "text",
        "string",
        "",
    ),
    ScalarCall(
        "zlib_decompress_from_base64_string",
        _build_decompression("zlib_decompress_from_base64_string", 15),
        "text",
        "string",
        "",
    ),
    ScalarCall("punycode_from_string", lambda text: text.encode("punycode").decode(), "string", "string", ""),
    ScalarCall("punycode_to_string", lambda text: text.encode().decode("punycode"), "string", "string", ""),
    ScalarCall("punycode_domain_from_string", _encode_domain, "string", "string", ""),
    ScalarCall("punycode_domain_to_string", _decode_domain, "string", "string", ""),
    ScalarCall("parse_xml", _parse_xml, "string", "dynamic"),
    ScalarCall("parse_command_line", _parse_command_line, "string string", "dynamic"),
    ScalarCall("treepath", _list_paths, "dynamic", "dynamic"),
    ScalarCall("jaccard_index", _compute_jaccard_index, "dynamic dynamic", "real"),
    ScalarCall("datetime_list_timezones", lambda: sorted(available_timezones()), "", "dynamic"),
)
SUPPORTED = tuple(call.name for call in CALLS)
functions = build_functions(CALLS)
macros: tuple[str, ...] = ()


def install() -> None:
    """Add the functions over encoded texts to the KQL translator library."""
    install_calls(CALLS)
