"""KQL functions that encode, decode, compress and parse texts, functions over JSON values, and hash functions.

The formats are base64, gzip, zlib, punycode, XML and command lines. A decompressed text has at most 16 MiB, a text for
punycode at most 512 characters.

Hash values are computed with the algorithm xxHash64. A string is hashed as UTF-8, a datetime and a timespan as the
number of 100 ns ticks, a number as its bytes. The values of ``hash_combine`` differ from Data Explorer's, because its
formula is not documented.
"""

import base64
import binascii
import shlex
import struct
import uuid
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from xml.parsers import expat
from zoneinfo import available_timezones

from duckdb_kql import ir

from emulators.kusto.extensions.registry import ANY_NUMBER, add_custom_function
from emulators.kusto.extensions.scalar_calls import JsonValue, ScalarCall, build_python_functions, install_scalar_calls
from emulators.kusto.extensions.sql import DuckDbType, Sql, render_expression, render_with_arguments_evaluated_once
from emulators.kusto.extensions.static_types import infer_static_type
from emulators.kusto.library_errors import RUNAWAY
from emulators.kusto.python_functions import FunctionFailure, PythonFunction
from emulators.kusto.stop_events import EXECUTION

_WHOLE = frozenset({"int", "long", None})
_MASK = (1 << 64) - 1
_PRIMES = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
_STRIPE = 32
_TICKS_BEFORE_1970 = (datetime(1970, 1, 1) - datetime(1, 1, 1)).days * 864_000_000_000  # noqa: DTZ001


def compute_xxhash64(data: bytes, seed: int = 0) -> int:
    """Return the xxHash64 of bytes as an unsigned integer."""
    first, second, third, fourth, fifth = _PRIMES
    position = 0
    if len(data) >= _STRIPE:
        lanes = [(seed + first + second) & _MASK, (seed + second) & _MASK, seed, (seed - first) & _MASK]
        whole = len(data) // _STRIPE * _STRIPE
        for stripe in struct.iter_unpack("<4Q", data[:whole]):
            lanes = [_mix_value_into_hash_lane(lane, value) for lane, value in zip(lanes, stripe, strict=True)]
        position = whole
        value = (
            sum(_rotate_left_in_64_bits(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        )
        for lane in lanes:
            value = ((value ^ _mix_value_into_hash_lane(0, lane)) * first + fourth) & _MASK
    else:
        value = (seed + fifth) & _MASK
    value = (value + len(data)) & _MASK
    while position + 8 <= len(data):
        (word,) = struct.unpack_from("<Q", data, position)
        value = (_rotate_left_in_64_bits(value ^ _mix_value_into_hash_lane(0, word), 27) * first + fourth) & _MASK
        position += 8
    if position + 4 <= len(data):
        (half,) = struct.unpack_from("<I", data, position)
        value = (_rotate_left_in_64_bits(value ^ (half * first & _MASK), 23) * second + third) & _MASK
        position += 4
    for byte in data[position:]:
        value = (_rotate_left_in_64_bits(value ^ (byte * fifth & _MASK), 11) * first) & _MASK
    value = (value ^ (value >> 33)) * second & _MASK
    value = (value ^ (value >> 29)) * third & _MASK
    return value ^ (value >> 32)


def _rotate_left_in_64_bits(value: int, bit_count: int) -> int:
    return ((value << bit_count) | (value >> (64 - bit_count))) & _MASK


def _mix_value_into_hash_lane(lane: int, value: int) -> int:
    return (_rotate_left_in_64_bits((lane + value * _PRIMES[1]) & _MASK, 31) * _PRIMES[0]) & _MASK


def _to_signed_64_bit_integer(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def compute_hash(duckdb_type: DuckDbType, text: str | None) -> int | None:
    """Return the hash of a value as a signed integer; None for null.

    Args:
        duckdb_type: DuckDB type of the value.
        text: the value as text; a datetime or timespan as its number of microseconds.
    """
    if text is None:
        return None
    return _to_signed_64_bit_integer(compute_xxhash64(_encode_value_for_hash(duckdb_type, text)))


def _encode_value_for_hash(duckdb_type: DuckDbType, text: str) -> bytes:
    encode = _ENCODERS.get(duckdb_type)
    return text.encode() if encode is None else encode(text)


def _encode_long_for_hash(text: str) -> bytes:
    return (int(text) & _MASK).to_bytes(8, "little")


_ENCODERS: Mapping[str, Callable[[str], bytes]] = {
    "BIGINT": _encode_long_for_hash,
    "HUGEINT": _encode_long_for_hash,
    "INTEGER": lambda text: (int(text) & 0xFFFFFFFF).to_bytes(4, "little"),
    "DOUBLE": lambda text: struct.pack("<d", float(text)),
    "BOOLEAN": lambda text: b"\1" if text == "true" else b"\0",
    "TIMESTAMP": lambda text: _encode_long_for_hash(str(int(text) * 10 + _TICKS_BEFORE_1970)),
    "INTERVAL": lambda text: _encode_long_for_hash(str(int(text) * 10)),
    "UUID": lambda text: uuid.UUID(text).bytes_le,
}


def _compute_unsigned_remainder(value: int | None, divisor: int | None) -> int | None:
    if value is None or divisor is None or divisor <= 0:
        return None
    return (value & _MASK) % divisor


def _combine_hashes(values: list[int | None]) -> int | None:
    combined = 17
    for value in values:
        if value is None:
            return None
        combined = ((combined * 31) ^ (value & _MASK)) & _MASK
    return _to_signed_64_bit_integer(combined)


macros: tuple[str, ...] = (
    # The macro copies its argument several times, so that the argument must be a name or a constant.
    (
        "CREATE OR REPLACE MACRO kql_hash(e, v) AS kql_hash_text(e, typeof(v), CASE typeof(v) "
        "WHEN 'TIMESTAMP' THEN CAST(epoch_us(CAST(CAST(v AS VARCHAR) AS TIMESTAMP)) AS VARCHAR) "
        "WHEN 'INTERVAL' THEN CAST(epoch_us(CAST(CAST(v AS VARCHAR) AS INTERVAL)) AS VARCHAR) "
        "ELSE CAST(v AS VARCHAR) END)"
    ),
)


def _render_hash(call: ir.FunctionCall) -> Sql:
    sql = _render_hash_of_argument(call.args[0])
    if len(call.args) == 1:
        return sql
    return f"kql_hash_rest({EXECUTION}, {sql}, CAST({render_expression(call.args[1])} AS BIGINT))"


def _render_hash_many(call: ir.FunctionCall) -> Sql:
    return f"kql_hash_combined({EXECUTION}, [{', '.join(map(_render_hash_of_argument, call.args))}])"


def _render_hash_of_argument(arg: ir.Expr) -> Sql:
    return render_with_arguments_evaluated_once(
        [render_expression(arg)], lambda value: f"kql_hash({EXECUTION}, {value})"
    )


def _render_hash_combine(call: ir.FunctionCall) -> Sql:
    # Other values than whole numbers are no hashes yet.
    hashes = [arg if infer_static_type(arg) in _WHOLE else ir.FunctionCall("hash", (arg,)) for arg in call.args]
    listed = ", ".join(f"CAST({render_expression(each)} AS BIGINT)" for each in hashes)
    return f"kql_hash_combined({EXECUTION}, [{listed}])"


MAX_DECOMPRESSED_BYTES = 16_777_216
MAX_XML_CHARACTERS = 1_048_576
"""Maximum length of an XML text in Data Explorer; the result of a longer text is null."""
MAX_PUNYCODE_CHARACTERS = 512
"""Maximum length of a text to encode or decode; the effort grows with its square. A domain name has at most 253."""
_MAX_XML_LEVELS = 100
_MAX_STORED_BLOCK = 65_535
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_ZLIB_HEADER = b"\x78\x01"
_RAW = -15


def _decode_base64(base64_text: str) -> bytes:
    return base64.b64decode(base64_text, validate=True)


def _decode_base64_to_array(base64_text: str) -> list[int] | None:
    try:
        return list(_decode_base64(base64_text))
    except binascii.Error:
        return None


def _encode_array_as_base64(values: list[int]) -> str:
    return base64.b64encode(bytes(values)).decode()


def _compress_with_deflate(data: bytes) -> bytes:
    """Compress data with deflate as .NET does: if compression would not make the data shorter, store it unchanged."""
    compressor = zlib.compressobj(wbits=_RAW)
    packed = compressor.compress(data) + compressor.flush()
    if len(packed) < len(data) or len(data) > _MAX_STORED_BLOCK:
        return packed
    return b"\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data


def _compress_gzip_to_base64(text: str) -> str:
    data = text.encode()
    end = struct.pack("<II", zlib.crc32(data), len(data))
    return base64.b64encode(_GZIP_HEADER + _compress_with_deflate(data) + end).decode()


def _compress_zlib_to_base64(text: str) -> str:
    data = text.encode()
    return base64.b64encode(
        _ZLIB_HEADER + _compress_with_deflate(data) + struct.pack(">I", zlib.adler32(data))
    ).decode()


def _build_decompressor(function_name: str, zlib_window_bits: int) -> Callable[[str], str]:
    def decompress_base64_text(base64_text: str) -> str:
        try:
            found = zlib.decompressobj(zlib_window_bits).decompress(
                _decode_base64(base64_text), MAX_DECOMPRESSED_BYTES + 1
            )
        except (zlib.error, binascii.Error):
            return ""
        if len(found) > MAX_DECOMPRESSED_BYTES:
            raise FunctionFailure(
                RUNAWAY, f"{function_name}() would create a text of more than {MAX_DECOMPRESSED_BYTES} bytes"
            )
        return found.decode("utf-8", "replace")

    return decompress_base64_text


def _encode_punycode_domain(text: str) -> str:
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in text.split(".")
    )


def _decode_punycode_domain(text: str) -> str:
    return ".".join(
        label[4:].encode().decode("punycode") if label.startswith("xn--") else label for label in text.split(".")
    )


def _build_punycode_call(function_name: str, convert_text: Callable[[str], str]) -> ScalarCall:
    """Build a KQL function that converts a text with ``convert_text``, and rejects texts that are too long."""

    def convert_short_text(text: str) -> str:
        if len(text) > MAX_PUNYCODE_CHARACTERS:
            raise FunctionFailure(
                "EMB0001",
                f"{function_name}() of more than {MAX_PUNYCODE_CHARACTERS} characters is not supported by the embedded "
                "query engine",
            )
        return convert_text(text)

    return ScalarCall(function_name, convert_short_text, "string", "string", "")


class _XmlReader:
    """Handler of XML parser events, which builds the JSON value of a document."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._stack: list[tuple[dict[str, Any], list[str]]] = [(self.root, [])]

    def parse_document(self, xml_text: str) -> dict[str, JsonValue]:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start_element
        parser.EndElementHandler = self._end_element
        parser.CharacterDataHandler = self._add_text
        parser.EntityDeclHandler = self._reject_entities
        try:
            parser.Parse(xml_text, True)
        except expat.ExpatError as error:
            raise ValueError("the text is not valid XML") from error
        return self.root

    def _add_text(self, data: str) -> None:
        self._stack[-1][1].append(data)

    def _reject_entities(self, *_: Any) -> None:
        raise ValueError("the XML declares entities, which could expand without limit")

    def _start_element(self, _name: str, attributes: dict[str, str]) -> None:
        if len(self._stack) > _MAX_XML_LEVELS:
            raise ValueError(f"the XML has more than {_MAX_XML_LEVELS} nested elements")
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


def _parse_xml_to_json_value(xml_text: str) -> JsonValue:
    if len(xml_text) > MAX_XML_CHARACTERS:
        return None
    return _XmlReader().parse_document(xml_text.strip())


def _split_command_line(command_line: str, parser_type: str) -> list[str] | None:
    if parser_type.lower() != "windows":
        raise ValueError(parser_type)
    lexer = shlex.shlex(command_line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.quotes, lexer.escape, lexer.commenters = True, '"', "", ""
    return list(lexer) or None


def _list_json_paths(json_value: JsonValue) -> list[str]:
    paths: dict[str, None] = {}

    def add_paths(json_value: JsonValue, path: str) -> None:
        if path:
            paths[path] = None
        if isinstance(json_value, dict):
            for key, inner in json_value.items():
                add_paths(inner, f"{path}['{key}']")
        elif isinstance(json_value, list):
            for inner in json_value:
                add_paths(inner, f"{path}[0]")

    add_paths(json_value, "")
    return list(paths)


def _compute_jaccard_index(first_set: list[JsonValue], second_set: list[JsonValue]) -> float | None:
    left, right = ({repr(each) for each in values} for values in (first_set, second_set))
    union = left | right
    return len(left & right) / len(union) if union else None


CALLS = (
    ScalarCall("base64_decode_toarray", _decode_base64_to_array, "string", "dynamic"),
    ScalarCall("base64_encode_fromarray", _encode_array_as_base64, "dynamic", "string", ""),
    ScalarCall("base64_decode_toguid", lambda text: str(uuid.UUID(bytes_le=_decode_base64(text))), "string", "guid"),
    ScalarCall(
        "base64_encode_fromguid", lambda text: base64.b64encode(uuid.UUID(text).bytes_le).decode(), "guid", "string", ""
    ),
    ScalarCall("gzip_compress_to_base64_string", _compress_gzip_to_base64, "text", "string", ""),
    ScalarCall("zlib_compress_to_base64_string", _compress_zlib_to_base64, "text", "string", ""),
    ScalarCall(
        "gzip_decompress_from_base64_string",
        _build_decompressor("gzip_decompress_from_base64_string", 31),
        "text",
        "string",
        "",
    ),
    ScalarCall(
        "zlib_decompress_from_base64_string",
        _build_decompressor("zlib_decompress_from_base64_string", 15),
        "text",
        "string",
        "",
    ),
    _build_punycode_call("punycode_from_string", lambda text: text.encode("punycode").decode()),
    _build_punycode_call("punycode_to_string", lambda text: text.encode().decode("punycode")),
    _build_punycode_call("punycode_domain_from_string", _encode_punycode_domain),
    _build_punycode_call("punycode_domain_to_string", _decode_punycode_domain),
    ScalarCall("parse_xml", _parse_xml_to_json_value, "string", "dynamic"),
    ScalarCall("parse_command_line", _split_command_line, "string string", "dynamic"),
    ScalarCall("treepath", _list_json_paths, "dynamic", "dynamic"),
    ScalarCall("jaccard_index", _compute_jaccard_index, "dynamic dynamic", "real"),
    ScalarCall("datetime_list_timezones", lambda: sorted(available_timezones()), "", "dynamic"),
)

SUPPORTED: tuple[str, ...] = (
    "hash",
    "hash_xxhash64",
    "hash_combine (other values than Data Explorer)",
    "hash_many (other values than Data Explorer)",
    *tuple(call.name for call in CALLS),
)

functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_hash_text", compute_hash, ("VARCHAR", "VARCHAR"), "BIGINT"),
    PythonFunction("kql_hash_rest", _compute_unsigned_remainder, ("BIGINT", "BIGINT"), "BIGINT"),
    PythonFunction("kql_hash_combined", _combine_hashes, ("BIGINT[]",), "BIGINT"),
    *build_python_functions(CALLS),
)


def install_into_translator() -> None:
    """Add the functions of this module, such as ``gzip_compress_to_base64_string``, to the KQL translator library."""
    for name in ("hash", "hash_xxhash64"):
        add_custom_function(name, (1, 2), _render_hash)
    add_custom_function("hash_many", range(2, ANY_NUMBER[-1] + 1), _render_hash_many)
    add_custom_function("hash_combine", range(2, ANY_NUMBER[-1] + 1), _render_hash_combine)
    install_scalar_calls(CALLS)
