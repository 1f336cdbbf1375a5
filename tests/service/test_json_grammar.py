"""Tests that every POST route accepts exactly the JSON grammar (RFC 8259).

The test cases are derived from the grammar and cover the categories of the public JSON parsing test suites.
"""

import re
from typing import Any

import httpx
import pytest

from functions import GROUPS
from shared.http.operations import MIB, Access, Operation, RawBody
from tests.service.local_service import Service, check_failing_fields

EVENT = b'{"ActionType":"a","EntityType":"b","EntityID":"c","AfterState":{"v":%b}}'
ALLOWED = {
    "empty array": b"[]",
    "empty object": b"{}",
    "empty string": b'""',
    "white space everywhere": b" \t\r\n[ 1 ,\n 2 ] \r",
    "null, true, false": b"[null,true,false]",
    "zero": b"0",
    "minus zero": b"-0",
    "negative": b"-1",
    "fraction": b"0.5",
    "capital exponent": b"1E2",
    "exponent with plus": b"1e+2",
    "exponent with minus": b"1e-2",
    "zero exponent": b"0e1",
    "small number": b"1e-300",
    "largest safe integer": b"9007199254740991",
    "escapes": rb'"\" \\ \/ \b \f \n \r \t"',
    "escaped NUL": rb'"\u0000"',
    "escaped letter": rb'"\u0061"',
    "capital hex": rb'"\u00E9"',
    "surrogate pair": rb'"\ud83d\ude00"',
    "raw UTF-8": '"é€😀"'.encode(),
    "raw U+2028": '"\u2028\u2029"'.encode(),
    "DEL": b'"\x7f"',
    "noncharacter": '"\uffff"'.encode(),
    "empty key": b'{"":1}',
    "escaped key": rb'{"\u0061":1}',
    "nested 50 deep": b"[" * 50 + b"]" * 50,
    "long string": b'"' + b"x" * 10_000 + b'"',
}
FORBIDDEN = {
    "nothing": b"",
    "space alone": b" ",
    "white space alone": b"\t\r\n ",
    "unclosed array": b"[1",
    "unclosed object": b'{"a":1',
    "unclosed string": b'"a',
    "comma at the end of an array": b"[1,]",
    "comma at the end of an object": b'{"a":1,}',
    "comma alone": b"[,1]",
    "two commas": b"[1,,2]",
    "colon in an array": b'["a":1]',
    "no colon": b'{"a" 1}',
    "two colons": b'{"a"::1}',
    "key without quotes": b"{a:1}",
    "key in single quotes": b"{'a':1}",
    "number as key": b"{1:1}",
    "string in single quotes": b"'a'",
    "plus sign": b"+1",
    "leading zero": b"012",
    "minus leading zero": b"-012",
    "minus alone": b"-",
    "dot at the end": b"1.",
    "dot at the begin": b".5",
    "exponent without digits": b"1e",
    "exponent sign without digits": b"1e+",
    "hexadecimal": b"0x1F",
    "underscore": b"1_000",
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "minus Infinity": b"-Infinity",
    "full-width digit": "\uff11".encode(),
    "beyond a double": b"1e999",
    "capital True": b"True",
    "cut literal": b"nul",
    "comment": b"[1/*c*/]",
    "line comment": b"[1]//c\n",
    "hash comment": b"[1]#c",
    "two values": b"1 2",
    "bracket too many": b"[1]]",
    "wrong bracket": b"[1}",
    "unknown escape": rb'"\x41"',
    "short unicode escape": rb'"\u00E"',
    "bad hex": rb'"\u00gg"',
    "lone high surrogate": rb'"\ud800"',
    "lone low surrogate": rb'"\udc00"',
    "turned surrogates": rb'"\ude00\ud83d"',
    "raw newline in a string": b'"a\nb"',
    "raw tab in a string": b'"a\tb"',
    "raw NUL in a string": b'"a\x00b"',
    "invalid UTF-8": b'"\xff"',
    "overlong UTF-8": b'"\xc0\xaf"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "cut UTF-8": b'"\xe2\x82"',
    "vertical tab as space": b"[\x0b1]",
    "no-break space": "[\u00a01]".encode(),
    "same key twice": b'{"a":1,"a":2}',
    "same key twice, once escaped": rb'{"a":1,"\u0061":2}',
    "nested 100,000 deep": b"[" * 100_000,
    "nested objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
}


def _list_operations() -> list[Operation]:
    """Return the operations that have a JSON body and that an administrator may call."""
    operations = [operation for group in GROUPS for operation in group.operations]
    return [one for one in operations if one.takes_body and one.body is not RawBody and one.access is not Access.PUBLIC]


@pytest.fixture(scope="module")
def admin(service: Service) -> httpx.Client:
    """Return a client with all access rights."""
    return service.create_client("admin@t")


@pytest.mark.parametrize("name", ALLOWED)
def test_valid_json_is_stored_unchanged(admin: httpx.Client, name: str) -> None:
    """A JSON value that the grammar allows is stored and returned unchanged."""
    reply = admin.post("/oi-api/provenance/events", content=EVENT % ALLOWED[name])
    assert reply.status_code == 201, reply.text
    assert reply.json()["AfterState"]["v"] == httpx.Response(200, content=ALLOWED[name]).json()


@pytest.mark.parametrize("name", FORBIDDEN)
def test_invalid_json_in_a_body_is_rejected(admin: httpx.Client, name: str) -> None:
    """A body with invalid or ambiguous JSON gets 400."""
    reply = admin.post("/oi-api/provenance/events", content=EVENT % FORBIDDEN[name])
    assert (reply.status_code, reply.json()["code"]) == (400, "BODY_NOT_JSON"), reply.text


@pytest.mark.parametrize("operation", _list_operations(), ids=lambda operation: operation.name)
def test_every_route_rejects_invalid_json(admin: httpx.Client, operation: Operation) -> None:
    """Every POST and PUT route rejects invalid JSON with 400, even if the item in the URL does not exist."""
    address = "/" + re.sub(r"\{\*?[^{}]+\}", "some", operation.route)
    for name, text in FORBIDDEN.items():
        if text:
            reply = admin.request(operation.method, address, content=text)
            assert reply.status_code == 400, (name, reply.text)
            assert _read_error_code(reply.json()) == "BODY_NOT_JSON", name


@pytest.mark.parametrize(
    "address", ["warm-queries/none/approve", "provenance/amendments/000000000001/approve?scopeKey=a"]
)
def test_an_optional_body_must_be_a_json_object(admin: httpx.Client, address: str) -> None:
    """A POST that needs no body still rejects a body that is not a JSON object or is larger than 1 MiB."""
    for text in (b"[]", b"null", b"1", b'"{}"'):
        assert check_failing_fields(admin.post(f"/oi-api/{address}", content=text)) == ["body"]
    for text in (b"", b"{}"):
        assert admin.post(f"/oi-api/{address}", content=text).status_code == 404
    refused = address.startswith("warm-queries")
    assert admin.post(f"/oi-api/{address}", content=b' {"approve":false}').status_code == (400 if refused else 404)
    assert admin.post(f"/oi-api/{address}", content=b" " * (MIB + 1)).status_code == 413


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_bodies_of_get_and_delete_are_ignored(admin: httpx.Client, method: str) -> None:
    """The body of a GET or DELETE request is ignored."""
    for text in (b"not json", b" ", b"[1,"):
        assert admin.request(method, "/oi-api/warm-queries/none", content=text).status_code == 404


def _read_error_code(body: dict[str, Any]) -> Any:
    return body.get("code")
