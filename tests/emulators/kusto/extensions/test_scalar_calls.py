"""Tests of functions over addresses, units, encoded texts and hashes, mostly with documented examples."""

import base64
import gzip
from typing import Any

import pytest

from emulators.kusto.extensions.encodings import CALLS, MAX_DECOMPRESSED_BYTES
from emulators.kusto.python_functions import FunctionFailure
from tests.emulators.kusto.endpoints import Endpoint

_LINE = 'dynamic({"type": "LineString", "coordinates": [[0, 0], [0, 1]]})'
_LINES = 'dynamic({"type": "MultiLineString", "coordinates": [[[0, 0], [0, 1]], [[5, 5], [5, 6]]]})'
EXAMPLES: list[tuple[str, Any]] = [
    ('hash("World")', 1846988464401551951),
    ('hash("World", 100)', 51),
    ('hash(datetime("2015-01-01"))', 1380966698541616202),
    ('hash_xxhash64("Hello")', 753694413698530628),
    ('hash(strrep("a", 100)) == hash_xxhash64(strrep("a", 100))', 1),
    ('hash_many("a", 1) == hash_combine(hash("a"), hash(1))', 1),
    ("hash(long(null))", None),
    ("convert_angle(1.2, 'Degree', 'Arcminute')", 72.0),
    ("convert_energy(1.2, 'Joule', 'BritishThermalUnit')", 0.0011373805443759806),
    ("convert_length(1.2, 'Meter', 'Foot')", 3.9370078740157477),
    ("convert_mass(1.2, 'Kilogram', 'Pound')", 2.6455471462185307),
    ("round(convert_speed(1.2, 'MeterPerSecond', 'CentimeterPerHour'), 6)", 432000.0),
    ("convert_temperature(1.2, 'Kelvin', 'DegreeCelsius')", -271.95),
    ("convert_angle(0.5, 'Tilt', 'Degree')", 30.000000000000004),
    ("convert_volume(1.0, 'CubicMeter', 'Other')", None),
    ("convert_force(real(null), 'Newton', 'Dyn')", None),
    ("format_bytes(564)", "564 B"),
    ("format_bytes(10332, 1)", "10.1 KB"),
    ("format_bytes(20010332, 2)", "19.08 MB"),
    ('format_bytes(20010332, 0, "KB")', "19541 KB"),
    ("format_ipv4('192.168.1.1', 24)", "192.168.1.0"),
    ("format_ipv4(3232235777)", "192.168.1.1"),
    ("format_ipv4('192.168.1.1/24', -1)", ""),
    ("format_ipv4_mask('192.168.1.1/24', 32)", "192.168.1.0/24"),
    ("has_ipv4('05:04:54 127.0.0.1 GET /favicon.ico 404', '127.0.0.1')", 1),
    ("has_ipv4('05:04:54 127.0.0.256 GET', '127.0.0.256')", 0),
    ("has_ipv4('05:04:54127.0.0.1 GET', '127.0.0.1')", 0),
    ("has_any_ipv4('a 127.0.0.1 b', '1.1.1.1', '127.0.0.1')", 1),
    ("has_any_ipv4('a 127.0.0.1 b', dynamic(['1.1.1.1']))", 0),
    ("has_ipv4_prefix('a 127.0.0.1 b', '127.0.')", 1),
    ("has_ipv4_prefix('a 127.0.0.1 b', '127.0')", 0),
    ("has_any_ipv4_prefix('a 127.0.0.1 b', dynamic(['1.', '127.0.0.1']))", 1),
    ("ipv4_range_to_cidr_list('1.1.128.0', '1.1.140.255')", ["1.1.128.0/21", "1.1.136.0/22", "1.1.140.0/24"]),
    ("ipv4_netmask_suffix('192.168.1.1/24')", 24),
    ("parse_ipv4_mask('127.0.0.1', 24)", 2130706432),
    ("parse_ipv4_mask('127.0.0.1', 33)", None),
    ("parse_ipv6_mask('192.168.255.255/24', 124)", "0000:0000:0000:0000:0000:ffff:c0a8:ff00"),
    ("ipv6_compare('::ffff:7f00:1', '127.0.0.1')", 0),
    ("ipv6_compare('::1', 'nothing')", None),
    ("ipv6_is_match('fe80::85d:e82c:9446:7994', 'fe80::85d:e82c:9446:7995', 127)", 1),
    ("ipv6_is_in_range('a5e:f127::abcd', 'a5e:f127::/32')", 1),
    ("ipv6_is_in_any_range('a5e:f127::abcd', dynamic(['::1', 'a5e::/16']))", 1),
    ("ipv4_is_in_any_range('192.168.1.6', '192.168.1.1/24', '10.0.0.1/8')", 1),
    ("treepath(dynamic({'a': [1, {'b': 2}]}))", ["['a']", "['a'][0]", "['a'][0]['b']"]),
    ("jaccard_index(dynamic([1, 2, 3]), dynamic([1, 2, 3, 4]))", 0.75),
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
    ('indexof_regex("abcabc", @"a.c")', 0),
    ('indexof_regex("abcabcdefg", @"a.c", 0, 9, 2)', 3),
    ('indexof_regex("abcabc", @"a.c", 1, -1, 2)', -1),
    ('indexof_regex("ababaa", @"a.a", 0, -1, 2)', -1),
    ("around(5, 4, 1)", 1),
    ("around(datetime(2024-01-01), datetime(2024-01-03), 1d)", 0),
    ("isutf8('x')", 1),
    ("ingestion_time()", None),
    ("array_index_of(datetime_list_timezones(), 'Europe/Berlin') > 0", 1),
    ("assert(1 < 2, 'never')", 1),
    ("binary_shift_left(1, 66)", 4),
    ("binary_shift_left(int(-1), 3)", -8),
    ("binary_shift_left(3, 63)", -(2**63)),
    ("binary_shift_left(1, -1)", None),
    ("binary_shift_right(5, 65)", 2),
    ("binary_shift_right(-5, 1)", -3),
    ("binary_shift_right(5, -1)", None),
    ("bag_has_key(dynamic({'a': 1}), '')", 0),
    ("bag_has_key(dynamic({'x \"y': 1}), 'x \"y')", 1),
    ("bag_has_key(dynamic({'a': {'b': 1}}), '$.a.b')", 1),
    ("set_intersect(parse_json('{\"a\": 1}'), dynamic([1]))", None),
    ("hash_combine(1.5, datetime(2024-01-02)) == hash_combine(1.5, datetime(2024-01-02))", 1),
    (f"round(geo_line_length({_LINE}))", 111195.0),
    (f"round(geo_line_length({_LINES}))", 222390.0),
    ("geo_line_length(dynamic({'type': 'Point', 'coordinates': [0, 0]}))", None),
    (f"round(geo_distance_point_to_line(1, 0.5, {_LINE}))", 111191.0),
    (f"round(geo_distance_point_to_line(0, 3, {_LINE}))", 222390.0),
    (f"round(geo_distance_point_to_line(0, 0.3, {_LINE}))", 0.0),
    (f"geo_distance_point_to_line(181, 0, {_LINE})", None),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_a_function_has_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function returns the documented result; an invalid argument gives null or the empty string."""
    assert endpoint.rows(f"print {expression}") == [[value]]


@pytest.mark.parametrize(
    "expression",
    [
        "has_ipv4(1, '1.1.1.1')",
        "convert_length('1', 'Meter', 'Foot')",
        "assert(1 == 2, 'no')",
        "assert(1, 'no')",
        "hash()",
        "treepath(1)",
    ],
)
def test_an_argument_of_another_type_is_an_error(endpoint: Endpoint, expression: str) -> None:
    """An argument of a wrong type and a failed assertion are errors of the query."""
    assert endpoint.code(f"print {expression}") in ("General_BadRequest", "BadRequest_NotSupported")


def test_the_size_of_a_decompressed_text_is_limited() -> None:
    """A short text that decompresses to a long text fails with the code for queries that are too large."""
    (decompress,) = (call for call in CALLS if call.name == "gzip_decompress_from_base64_string")
    packed = base64.b64encode(gzip.compress(b"a" * (MAX_DECOMPRESSED_BYTES + 1))).decode()
    with pytest.raises(FunctionFailure, match="80DA0007"):
        decompress.run(packed)
