"""Tests of conversions of types and units, and of the format of byte counts, with the documented results."""

from typing import Any

import pytest

from tests.emulators.kusto.endpoints import Endpoint

VALUES: list[tuple[str, Any]] = [
    ("extract('x=([0-9.]+)',1,'hello x=45.6|wo',typeof(real))", 45.6),
    ("extract('([a-z]+)',1,'abc1')", "abc"),
    ("extract_json('$.a.b','{\"a\":{\"b\":5}}',typeof(int))", 5),
    ("tohex(256)", "100"),
    ("tohex(-256)", "ffffffffffffff00"),
    ("tohex(256,8)", "00000100"),
    ("tohex(int(-2))", "fffffffe"),
    ("extract_all(@'(?P<a>.)(.)(?P<c>.)', dynamic(['c', 1]), 'abcxyz')", [["c", "a"], ["z", "x"]]),
    ("bitset_count_ones(42)", 3),
    ("factorial(5)", 120),
    ("todecimal('123.45678') == todecimal('123.45678')", True),
    ("todecimal(7) + 1", "8"),
    ("isnull(todecimal('x'))", True),
    ("abs(-1h)", "01:00:00"),
    ("gettype(abs(int(-3)))", "long"),
    ("gettype(ceiling(int(3)))", "int"),
    ("ceiling(0.9)", 1.0),
    ("tohex(5, 16)", "0000000000000005"),
    ("toguid('70fc66f7-8279-44fc-9092-d364d70fce44') == toguid('70fc66f7827944fc9092d364d70fce44')", True),
]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_conversions_have_the_documented_results(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A conversion returns the documented result."""
    (result,) = endpoint.query_rows(f"print x = {expression}")[0]
    assert type(result) is type(value)
    assert result == value


@pytest.mark.parametrize(
    "text",
    [
        "print tohex(1, 99999999)",
        "print extract('a', 1, 'a', typeof(nothing))",
    ],
)
def test_unsupported_conversions_are_rejected(endpoint: Endpoint, text: str) -> None:
    """An unsupported conversion is rejected with its name."""
    assert endpoint.query_error_code(text) in ("BadRequest_NotSupported", "BadRequest_SyntaxError")


@pytest.mark.parametrize("digits", ["9223372036854775808", "-9223372036854775809", "99999999999999999999", "1" * 400])
def test_conversions_of_integers_beyond_64_bits_give_null(endpoint: Endpoint, digits: str) -> None:
    """tolong() and toint() return null for an integer that is too large, from a value of any type."""
    forms = ("s", "p.x", "p['x']", "d", "tostring(p.x)", "p.a[0]")
    columns = ", ".join(f"{function}({form})" for function in ("tolong", "toint") for form in forms)
    source = f"datatable(s:string)['{digits}']"
    parsed = """p = parse_json(strcat('{"x":', s, ',"a":[', s, ']}')), d = parse_json(s)"""
    assert endpoint.query_rows(f"{source} | extend {parsed} | project {columns}") == [[None] * 2 * len(forms)]


def test_numbers_within_64_bits_are_converted(endpoint: Endpoint) -> None:
    """The largest integer is converted exactly; a real that is too large becomes the nearest integer."""
    source = "datatable(s:string)['9223372036854775807', '1e30', '7.9'] | extend d = parse_json(s)"
    found = endpoint.query_rows(f"{source} | extend p = bag_pack('x', d) | project tolong(d), tolong(p.x)")
    assert found == [[2**63 - 1, 2**63 - 1], [2**63 - 1, 2**63 - 1], [7, 7]]


def test_texts_with_too_many_digits_for_a_decimal_are_rejected(endpoint: Endpoint) -> None:
    """Converting a text with more digits than a decimal can have is rejected."""
    assert endpoint.query_error_code("print todecimal('1.0000000001')") == "General_BadRequest"


def test_numbers_in_dynamic_values_are_converted_by_their_json_type(endpoint: Endpoint) -> None:
    """A value in a dynamic is converted by its JSON type; numbers become integers by truncation."""
    query = (
        "datatable(d:dynamic)[dynamic({'a':5.7}), dynamic({'a':'5.7'}), dynamic({'a':true}), dynamic({'a':9999999999}),"
        " dynamic({'b':1})] | project toint(d.a), tolong(d.a), toreal(d.a), tostring(d.a)"
    )
    assert endpoint.query_rows(query) == [
        [5, 5, 5.7, "5.7"],
        [None, None, 5.7, "5.7"],
        [1, 1, 1.0, "true"],
        [1410065407, 9999999999, 9999999999.0, "9999999999"],
        [None, None, None, ""],
    ]


EXAMPLES: list[tuple[str, Any]] = [
    ("convert_angle(1.2, 'Degree', 'Arcminute')", 72.0),
    ("convert_energy(1.2, 'Joule', 'BritishThermalUnit')", 0.0011373805443759806),
    ("convert_length(1.2, 'Meter', 'Foot')", 3.9370078740157477),
    ("convert_mass(1.2, 'Kilogram', 'Pound')", 2.6455471462185307),
    ("round(convert_speed(1.2, 'MeterPerSecond', 'CentimeterPerHour'), 6)", 432000.0),
    ("convert_temperature(1.2, 'Kelvin', 'DegreeCelsius')", -271.95),
    ("convert_angle(0.5, 'Tilt', 'Degree')", 30.000000000000004),
    ("convert_volume(1.0, 'CubicMeter', 'Other')", None),
    ("convert_force(real(null), 'Newton', 'Dyn')", None),
    ("format_bytes(564)", "564 Bytes"),
    ("format_bytes(10332, 1)", "10.1 KB"),
    ("format_bytes(20010332, 2)", "19.08 MB"),
    ('format_bytes(20010332, 0, "KB")', "19541 KB"),
]


@pytest.mark.parametrize(("expression", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_conversions_of_units_have_the_documented_result(endpoint: Endpoint, expression: str, value: Any) -> None:
    """A conversion of units has the documented result; for an unknown unit, the result is null."""
    assert endpoint.query_rows(f"print {expression}") == [[value]]


@pytest.mark.parametrize("text", ["1_000", "1_0.5_5", "+-5", "1_0e2", "5 kg", "0x10", ""])
def test_a_text_that_is_no_number_is_null(endpoint: Endpoint, text: str) -> None:
    """A conversion of a text to a number is null if the text is no number, also in a dynamic and in ``parse``."""
    source = f"datatable(s:string)[\"{text}\"] | extend e = s, d = todynamic(strcat('[\"', s, '\"]'))"
    values = "todouble(s), toreal(e), todouble(d[0]), todecimal(s), todouble(dynamic_of), d[0] > 0.5"
    rows = endpoint.query_rows(f"{source} | extend dynamic_of = d[0] | project {values}")
    assert rows == [[None] * 6]
    parsed = f'print s = "v={text};" | parse s with "v=" v:real ";" | project v'
    assert endpoint.query_rows(parsed) == [[None]]


@pytest.mark.parametrize(
    ("text", "value"),
    [("5.", 5.0), (".5", 0.5), ("+5", 5.0), (" 7 ", 7.0), ("1e-2", 0.01), ("NaN", "NaN"), ("-Infinity", "-Infinity")],
)
def test_a_text_is_converted_to_a_real(endpoint: Endpoint, text: str, value: float | str) -> None:
    """Signs, exponents, spaces around the number, and the names of NaN and infinity are converted to a real."""
    source = f"datatable(s:string)[\"{text}\"] | extend e = s, d = todynamic(strcat('[\"', s, '\"]'))"
    assert endpoint.query_rows(f"{source} | project todouble(s), todouble(e), todouble(d[0])") == [[value] * 3]


@pytest.mark.parametrize("text", ["hello", "", "2026-01-01", "NaN", "-Infinity", "[1,]", '{"a":NaN}', "{'a':1}", "01"])
def test_a_text_that_is_not_json_stays_a_text(endpoint: Endpoint, text: str) -> None:
    """``parse_json`` of a text that is not JSON holds this text, and has no properties."""
    source = f"datatable(s:string)[@'{text.replace(chr(39), chr(39) * 2)}'] | extend e = s"
    values = "tostring(parse_json(s)), tostring(todynamic(e)), gettype(parse_json(s)), isnull(parse_json(e).a)"
    assert endpoint.query_rows(f"{source} | project {values}") == [[text, text, "string", True]]


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), (" [1, 2] ", [1, 2]), ('"hello"', "hello"), ("null", None), ('{"a":"NaN,]"}', {"a": "NaN,]"})],
)
def test_a_json_text_is_parsed(endpoint: Endpoint, text: str, value: Any) -> None:
    """``parse_json`` parses JSON; words such as NaN inside a JSON string have no effect."""
    assert endpoint.query_rows(f"datatable(s:string)[@'{text}'] | project parse_json(s)") == [[value]]
