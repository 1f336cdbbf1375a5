"""Tests of functions over texts and IPv4 addresses, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

VALUES: list[tuple[str, Any]] = [
    ("indexof('abcdefg','cde')", 2),
    ("indexof('abcdefg','cde',1,4)", 2),
    ("indexof('abcdefg','cde',1,2)", -1),
    ("indexof('abcdefg','cde',3,4)", -1),
    ("indexof('abcdefg','cde',-5)", 2),
    ("indexof(1234567,5,1,4)", 4),
    ("indexof('abcdefg','cde',2,-1)", 2),
    ("indexof('abcdefgabcdefg','cde',1,-1,3)", -1),
    ("indexof('abcdefgabcdefg','cde',1,-1,2)", 9),
    ("indexof('a-b-c-','-',0,2,3)", 5),
    ("indexof('a-b--c','-',0,1,2)", -1),
    ("split('aa_bb','_')", ["aa", "bb"]),
    ("split('aaa_bbb_ccc','_',1)", ["bbb"]),
    ("split('','_')", [""]),
    ("split('a__b','_')", ["a", "", "b"]),
    ("split('aabbcc','bb')", ["aa", "cc"]),
    ("translate('abc','x','abc')", "xxx"),
    ("translate('abc','','ab')", ""),
    ("translate('krasp','otsku','spark')", "kusto"),
    (
        'parse_csv(\'aa,"b,b,b",cc,"Escaping quotes: ""Title""","line1\\nline2"\')',
        ["aa", "b,b,b", "cc", 'Escaping quotes: "Title"', "line1\nline2"],
    ),
    ("parse_csv('record1,a,b,c\\nrecord2,x,y,z')", ["record1", "a", "b", "c"]),
    ("parse_version('0.0.0.5') == 5", True),
    ("parse_version('1.2.3.4') > parse_version('1.2.3')", True),
    ("isnull(parse_version('a.b'))", True),
    (
        "parse_path(@'C:\\temp\\file.txt')",
        {
            "Scheme": "",
            "RootPath": "C:",
            "DirectoryPath": "C:\\temp",
            "DirectoryName": "temp",
            "Filename": "file.txt",
            "Extension": "txt",
            "AlternateDataStreamName": "",
        },
    ),
    (
        "parse_path('file://C:/temp/file.txt:some.exe')",
        {
            "Scheme": "file",
            "RootPath": "C:",
            "DirectoryPath": "C:/temp",
            "DirectoryName": "temp",
            "Filename": "file.txt",
            "Extension": "txt",
            "AlternateDataStreamName": "some.exe",
        },
    ),
    (
        "parse_path('/usr/lib/temp/file.txt')",
        {
            "Scheme": "",
            "RootPath": "",
            "DirectoryPath": "/usr/lib/temp",
            "DirectoryName": "temp",
            "Filename": "file.txt",
            "Extension": "txt",
            "AlternateDataStreamName": "",
        },
    ),
    ("parse_urlquery('k1=v1&k2=v2&k3=v3')", {"Query Parameters": {"k1": "v1", "k2": "v2", "k3": "v3"}}),
    (
        (
            "replace_strings('A magic trick can turn a cat into a dog', dynamic(['cat','dog']), "
            "dynamic(['dog','pigeon']))"
        ),
        "A magic trick can turn a dog into a pigeon",
    ),
    ("replace_strings('This is an example', dynamic(['is','This']), dynamic(['was','This']))", "Thwas was an example"),
    ("replace_strings('This is an example', dynamic(['This','is']), dynamic([12345,'was']))", "This was an example"),
    ("base64_encode_tostring('ä')", "w6Q="),
    ("base64_decode_tostring('w6Q=')", "ä"),
    ("base64_decode_tostring('!')", ""),
    ("url_encode('https://www.bing.com/hello world')", "https%3a%2f%2fwww.bing.com%2fhello+world"),
    ("url_encode_component('https://www.bing.com/hello world')", "https%3a%2f%2fwww.bing.com%2fhello%20world"),
    ("url_decode('https%3a%2f%2fwww.bing.com%2f')", "https://www.bing.com/"),
    ("strcmp('ABC','ABC')", 0),
    ("strcmp('abc','ABC')", 1),
    ("strcmp('ABC','abc')", -1),
    ("strcmp('abcde','abc')", 1),
    ("strrep('abc',3)", "abcabcabc"),
    ("strrep(123.45,2)", "123.45123.45"),
    ("strrep(3s,2,' ')", "00:00:03 00:00:03"),
    ("string_size('hello')", 5),
    ("string_size('⒦⒰⒮⒯⒪')", 15),
    ("unicode_codepoints_from_string('⒦⒰⒮⒯⒪')", [9382, 9392, 9390, 9391, 9386]),
    ("unicode_codepoints_to_string(dynamic([75, 117, 115, 116, 111]))", "Kusto"),
    ("unicode_codepoints_to_string(75, dynamic([117, 115]), 116, 111)", "Kusto"),
    ("has_any_index('this is an example', dynamic(['this','example']))", 0),
    ("has_any_index('this is an example', dynamic(['not','example']))", 1),
    ("has_any_index('x', dynamic(['y']))", -1),
    ("strcat_array(split('a,b,c', ','), '-')", "a-b-c"),
    ("strcat_array(dynamic(['a', null, 3]), tostring(1))", "a113"),
    ("strcat_array(dynamic([]), tostring(1))", ""),
    ("base64_decode_tostring(parse_ipv6('x'))", ""),
    ("countof('aaaa','aa')", 3),
    ("replace_string('abc','b','x')", "axc"),
    ("replace_regex('a1b2', @'(\\d)', @'[\\1]')", "a[1]b[2]"),
    ("base64_encode_tostring('Kusto')", "S3VzdG8="),
    ("base64_decode_tostring('S3VzdG8=')", "Kusto"),
    ("hash_sha256('World')", "78ae647dc5544d227130a0682a51e30bc7777fbb6d8a8f17007463a3ecd1d524"),
    ("ipv4_compare('192.168.1.1/24','192.168.1.255/24')", 0),
    ("ipv4_compare('127.0.0.1','127.0.0.2')", -1),
    ("ipv4_is_match('192.168.1.1','192.168.1.255',24)", True),
    ("ipv4_is_in_range('192.168.1.6','192.168.1.0/24')", True),
    ("ipv4_is_in_range('192.168.2.6','192.168.1.0/24')", False),
    ("ipv4_is_private('192.168.1.1/24')", True),
    ("ipv4_is_private('202.1.2.3')", False),
    ("isnull(ipv4_is_private('127.0..1'))", True),
    ("ipv4_is_match('127.0.0.1','x')", None),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_functions_over_strings_return_the_documented_values(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A function over strings and IPv4 addresses returns the documented value."""
    (result,) = endpoint.query_rows(f"print x = {expression}")[0]
    assert type(result) is type(value)
    assert result == value


def test_unsupported_calls_of_text_functions_are_rejected(endpoint: Endpoint) -> None:
    """A call of a text function whose result is not documented is rejected with the function's name."""
    assert endpoint.query_error_code("print strrep('a', 5000)") == "BadRequest_NotSupported"


ARITHMETIC = (
    "7 % n",
    "n - 8",
    "long(null) + n",
    "1.5 * n",
    "0.0 / 0.0",
    "-1.0 / 0.0",
    "real(null) / n",
    "n / 0",
    "datetime(2026-01-05) + n * 1h",
    "datetime(2026-01-06) - datetime(2026-01-05)",
    "datetime(null) + 1d",
)


@pytest.mark.parametrize("expression", ARITHMETIC)
@pytest.mark.parametrize("join", ["strcat('<', {0}, '>')", "strcat_delim('-', 'a', {0}, 'b')"])
def test_joined_values_have_the_same_text_with_and_without_a_size_check(
    endpoint: Endpoint, join: str, expression: str
) -> None:
    """The text of joined values is the same with and without the check of its size."""
    checked = join.format(f"iff(n > 0, {expression}, {expression})")
    query = f"print n = 3 | extend unchecked = {join.format(expression)}, checked = {checked}"
    _, unchecked, checked = endpoint.query_rows(query)[0]
    assert unchecked == checked
