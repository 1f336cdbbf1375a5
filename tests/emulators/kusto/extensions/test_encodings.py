"""Tests of functions that encode and decode texts, functions over bags, and hash functions."""

import base64
import gzip
from typing import Any

import pytest

from emulators.kusto.extensions.encodings import CALLS, MAX_DECOMPRESSED_BYTES, MAX_PUNYCODE_CHARACTERS
from emulators.kusto.extensions.scalar_calls import ScalarCall
from emulators.kusto.python_functions import FunctionFailure
from tests.emulators.kusto.endpoints import Endpoint

EXAMPLES: list[tuple[str, Any]] = [
    ("treepath(dynamic({'a': [1, {'b': 2}]}))", ["['a']", "['a'][0]", "['a'][0]['b']"]),
    ("parse_xml('<e/>')", {"e": None}),
    ("parse_xml('<e>text</e>')", {"e": "text"}),
    ("parse_xml('<e name=\"value\">text</e>')", {"e": {"@name": "value", "#text": "text"}}),
    ("parse_xml('<e> <a>x</a> <a>y</a> </e>')", {"e": {"a": ["x", "y"]}}),
    ("parse_xml('<e> t <a>x</a> </e>')", {"e": {"#text": "t", "a": "x"}}),
    ("parse_xml('<e>')", None),
    ("parse_xml('<!DOCTYPE d [<!ENTITY a \"b\">]><d>&a;</d>')", None),
    ('parse_command_line(\'echo "hello world!" print$?\', "windows")', ["echo", "hello world!", "print$?"]),
    (
        'gzip_compress_to_base64_string("1234567890qwertyuiop")',
        "H4sIAAAAAAAA/wEUAOv/MTIzNDU2Nzg5MHF3ZXJ0eXVpb3A6m7f2FAAAAA==",
    ),
    ('zlib_compress_to_base64_string("1234567890qwertyuiop")', "eAEBFADr/zEyMzQ1Njc4OTBxd2VydHl1aW9wOAkGdw=="),
    ('gzip_decompress_from_base64_string(gzip_compress_to_base64_string(strrep("a", 999))) == strrep("a", 999)', 1),
    ('zlib_decompress_from_base64_string("eJwLSS0uUSguKcrMS1cwNDIGACxqBQ4=")', "Test string 123"),
    ('zlib_decompress_from_base64_string("x0x0x0")', ""),
    ('base64_decode_toarray("S3VzdG8=")', [75, 117, 115, 116, 111]),
    ('base64_decode_toarray("a")', None),
    ("base64_encode_fromarray(dynamic([75, 117, 115, 116, 111]))", "S3VzdG8="),
    ('base64_encode_fromguid(toguid("ae3133f2-6e22-49ae-b06a-16e6a9b212eb"))', "8jMxriJurkmwahbmqbIS6w=="),
    ('base64_decode_toguid("8jMxriJurkmwahbmqbIS6w==")', "ae3133f2-6e22-49ae-b06a-16e6a9b212eb"),
    ("punycode_from_string('acad\u00e9mie-fran\u00e7aise')", "acadmie-franaise-npb1a"),
    ("punycode_to_string('acadmie-franaise-npb1a')", "acad\u00e9mie-fran\u00e7aise"),
    ("punycode_domain_to_string('xn--ge-xia.fr')", "\u00e5ge.fr"),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_encoding_functions_have_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function has the documented result; for an invalid text, the result is null or an empty string."""
    assert endpoint.query_rows(f"print {expression}") == [[value]]


def test_the_size_of_a_decompressed_text_is_limited() -> None:
    """A text that is too long when decompressed is rejected with the code for too large queries."""
    (decompress,) = (call for call in CALLS if call.name == "gzip_decompress_from_base64_string")
    packed = base64.b64encode(gzip.compress(b"a" * (MAX_DECOMPRESSED_BYTES + 1))).decode()
    with pytest.raises(FunctionFailure, match="80DA0007"):
        decompress.run(packed)


_PUNYCODE_CALLS = [call for call in CALLS if call.name.startswith("punycode_")]


@pytest.mark.parametrize("call", _PUNYCODE_CALLS, ids=[call.name for call in _PUNYCODE_CALLS])
def test_the_length_of_a_punycode_text_is_limited(call: ScalarCall) -> None:
    """A text that is too long to encode or decode as punycode in a few milliseconds is rejected."""
    call.run("a" * MAX_PUNYCODE_CHARACTERS)
    with pytest.raises(FunctionFailure, match="EMB0001"):
        call.run("a" * (MAX_PUNYCODE_CHARACTERS + 1))


HASH_EXAMPLES: list[tuple[str, Any]] = [
    ('hash("World")', 1846988464401551951),
    ('hash("World", 100)', 51),
    ('hash(datetime("2015-01-01"))', 1380966698541616202),
    ('hash_xxhash64("Hello")', 753694413698530628),
    ('hash(strrep("a", 100)) == hash_xxhash64(strrep("a", 100))', 1),
    ('hash_many("a", 1) == hash_combine(hash("a"), hash(1))', 1),
    ("hash(long(null))", None),
    ("hash_combine(1.5, datetime(2024-01-02)) == hash_combine(1.5, datetime(2024-01-02))", 1),
]


@pytest.mark.parametrize(("expression", "value"), HASH_EXAMPLES, ids=[text for text, _ in HASH_EXAMPLES])
def test_a_hash_function_has_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A hash has the documented value; the hash of null is null."""
    assert endpoint.query_rows(f"print {expression}") == [[value]]
