"""Tests of canonical JSON (RFC 8785), compared with the library rfc8785 and with published examples."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import (
    encode_canonical_json,
    encode_canonical_object,
    is_canonical_json,
    parse_canonical_json,
)
from shared.provenance.hash_rule import MAX_DEPTH

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "jcs.json").read_text(encoding="utf-8"))
WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
SURROGATE_ORDER = {"\U0001f600": 1, "\ufb33": 2, "a": 3}
"""Code points and UTF-16 units order these keys differently."""


@given(JSON)
@example(SURROGATE_ORDER)
@example([1e16, 1e-6, 1e-5, -0.0, 1e15, 1e15 + 0.5, 5e-324, 1.7976931348623157e308, 2.0**53])
def test_the_fast_serialiser_equals_the_library_rfc8785(value: Any) -> None:
    """For any value, the fast serialiser writes the same bytes as the library rfc8785."""
    assert encode_canonical_json(value) == rfc8785.dumps(value)


@given(FLOATS)
def test_numbers_have_the_format_of_ecmascript(number: float) -> None:
    """Numbers have the format of ECMAScript, as RFC 8785 section 3.2.2.3 requires."""
    assert encode_canonical_json([number]).decode() == f"[{_format_as_ecmascript(number)}]"


@pytest.mark.parametrize("vector", VECTORS["numbers"], ids=lambda vector: vector["ieee754"])
def test_published_numbers_are_serialised_as_in_the_rfc(vector: dict[str, str]) -> None:
    """Each number in appendix B of RFC 8785 is serialised as it is shown there."""
    (number,) = struct.unpack(">d", bytes.fromhex(vector["ieee754"]))
    assert encode_canonical_json(number).decode() == vector["text"]


@pytest.mark.parametrize("vector", VECTORS["documents"], ids=lambda vector: vector["name"])
def test_published_documents_are_serialised_as_in_the_rfc(vector: dict[str, Any]) -> None:
    """The objects in section 3.2 of RFC 8785 are serialised as shown there, with keys in the order of section 3.2.3."""
    value = json.loads(vector["json"])
    assert encode_canonical_json(value).hex() == rfc8785.dumps(value).hex() == vector["canonicalHex"]


@given(JSON)
def test_canonical_text_is_parsed_to_the_same_value(value: Any) -> None:
    """Canonical bytes are parsed to an equal value, which has the same canonical bytes."""
    canonical = encode_canonical_json(value)
    assert parse_canonical_json(canonical) == value
    assert encode_canonical_json(parse_canonical_json(canonical)) == canonical
    assert is_canonical_json(canonical) or value is None


@given(JSON)
@example([1e16, 1e-6, 1.0, -0.0, 1.5])
@example({"PreviousHash": "x", "a": 1e22})
@example({"PreviousHash": "0" * 64, "a": 1e22})
@example({"a": [2**53 - 1.0, 0.5]})
def test_sorted_json_is_not_always_canonical(value: Any) -> None:
    """JSON with sorted keys is canonical only if RFC 8785 gives the same bytes."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    same = value is not None and rfc8785.dumps(value) == text
    assert is_canonical_json(text) == same


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}', '{"b":1,"a":2}', '{"a":1,"a":1}', "[1.0]", "[1e2]", "[1E21]", "[-0]", '["\\u0041"]', '["\\/"]',
     "[9007199254740993]", "[100000000000000000001]", '{"\U0001f600":1,"\ufb33":2,"a":3}', "[NaN]", "", "{", "[1]\n"],
)  # fmt: skip
def test_other_forms_of_a_value_are_not_canonical(text: str) -> None:
    """Another form of the same value is not canonical, and neither is invalid JSON."""
    assert not is_canonical_json(text.encode())


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": [0, {"b": 2**53}]}, "a[1].b"),
        ({"a": 10**5000}, "a"),
        ({"a": float("nan")}, "a"),
        ({"a": {"b": float("inf")}}, "a.b"),
        ({"a": "x\ud800"}, "a"),
        ({"a": {"\udfff": 1}}, "a"),
        ({"a": {1: 2}}, "a"),
        ({"a": object()}, "a"),
    ],
)
def test_values_without_canonical_form_are_rejected_by_name(value: Any, field: str) -> None:
    """The error about a value without a canonical form contains the property's name."""
    with pytest.raises(WorkspaceError) as caught:
        encode_canonical_object(value)
    errors: Any = caught.value.members["errors"]
    assert (caught.value.kind, errors[0]["field"]) == (Kind.INVALID, field)


@pytest.mark.parametrize("innermost", [1, 1.0, "é", 1e300, {"é": 2}])
def test_writers_and_readers_have_the_same_depth_limit(innermost: Any) -> None:
    """Writers and readers accept a depth of 128 levels, counted with the object itself, and reject a depth of 129."""
    levels = MAX_DEPTH - 1 - isinstance(innermost, dict)
    value: Any = innermost
    for _ in range(levels):
        value = [value]
    assert is_canonical_json(encode_canonical_object({"state": value}))
    with pytest.raises(WorkspaceError) as caught:
        encode_canonical_object({"state": [value]})
    assert "must not be nested deeper than 128 levels" in str(caught.value.members["errors"])
    assert not is_canonical_json(rfc8785.dumps({"state": [value]}))


def test_extreme_nesting_is_rejected() -> None:
    """Extremely deep nesting in a request is reported as an error of the caller, and does not crash the process."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(WorkspaceError) as caught:
        encode_canonical_object({"state": value})
    assert caught.value.kind is Kind.INVALID


def _format_as_ecmascript(number: float) -> str:
    """Format a number by ECMA-262 section 6.1.6.1.20, with the shortest digits, which Python's repr gives."""
    if number == 0:
        return "0"
    sign = "-" if math.copysign(1, number) < 0 else ""
    mantissa, exponent = f"{abs(number)!r}e0".split("e")[:2]
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    scientific = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{scientific}e{point - 1:+d}"
