"""Tests of the operator ``parse-kv``, with the documented examples, and of the parser of key-value texts."""

from typing import Any

import pytest

from emulators.kusto.extensions.parse_kv import MAX_CHARACTERS, KeyValueReader, read_key_values_as_json
from emulators.kusto.python_functions import FunctionFailure
from tests.emulators.kusto.endpoints import Endpoint

EXAMPLES: list[tuple[str, str, str, list[Any]]] = [
    (
        (
            'print str=\'src=10.1.1.123 dst=10.1.1.124 bytes=125 failure="connection aborted" "event'
            " time\"=2021-01-01T10:00:54'"
        ),
        "(['event time']:datetime, src:string, dst:string, bytes:long, failure:string)",
        "(pair_delimiter=' ', kv_delimiter='=', quote='\"')",
        ["2021-01-01T10:00:54.000000Z", "10.1.1.123", "10.1.1.124", 125, "connection aborted"],
    ),
    (
        (
            "print str='src=10.1.1.123 dst=10.1.1.124 bytes=125 failure=(connection aborted) (event"
            " time)=(2021-01-01 10:00:54)'"
        ),
        "(['event time']:datetime, src:string, dst:string, bytes:long, failure:string)",
        "(pair_delimiter=' ', kv_delimiter='=', quote='()')",
        ["2021-01-01T10:00:54.000000Z", "10.1.1.123", "10.1.1.124", 125, "connection aborted"],
    ),
    (
        (
            "print str='src=10.1.1.123 dst=10.1.1.124 bytes=125 failure=\"the remote host sent"
            ' \\\\"bye!\\\\"" time=2021-01-01T10:00:54\''
        ),
        "(['time']:datetime, src:string, dst:string, bytes:long, failure:string)",
        "(pair_delimiter=' ', kv_delimiter='=', quote='\"', escape='\\\\')",
        ["2021-01-01T10:00:54.000000Z", "10.1.1.123", "10.1.1.124", 125, 'the remote host sent "bye!"'],
    ),
    (
        "print str='name=John Doe phone=555 5555 city=New York'",
        "(name:string, phone:string, city:string)",
        "(pair_delimiter=' ', kv_delimiter='=')",
        ["John", "555", "New"],
    ),
    (
        "print str='name=John Doe phone=555 5555 city=New York'",
        "(name:string, phone:string, city:string)",
        "(pair_delimiter=' ', kv_delimiter='=', greedy=true)",
        ["John Doe", "555 5555", "New York"],
    ),
    (
        'print str="2021-01-01T10:00:34 [INFO] ThreadId:458745723, Machine:Node001, Text: Started"',
        "(Text: string, ThreadId:long, Machine: string)",
        "",
        ["Started", 458745723, "Node001"],
    ),
    (
        (
            "print str=\"2021-01-01T10:00:34 [INFO] ThreadId:458745723, Machine:Node001, Text: 'The"
            " service \\\\' is up'\""
        ),
        "(Text: string, ThreadId:long, Machine: string)",
        "(quote=\"'\", escape='\\\\')",
        ["The service ' is up", 458745723, "Node001"],
    ),
]


@pytest.mark.parametrize(("source", "keys", "properties", "row"), EXAMPLES)
def test_parse_kv_turns_keys_into_columns(
    endpoint: Endpoint, source: str, keys: str, properties: str, row: list[Any]
) -> None:
    """Each key of the text becomes a column; quotes, escapes and greedy values work as documented."""
    clause = f" with {properties}" if properties else ""
    assert endpoint.query_rows(f"{source} | parse-kv str as {keys}{clause} | project-away str") == [row]


@pytest.mark.parametrize(
    "properties",
    [
        "pair_delimiter=' '",
        "quote='abc'",
        "quote='\"', escape='ab'",
        "regex='(a)(b)', quote='\"'",
        "greedy=true",
        "other='x'",
    ],
)
def test_invalid_properties_of_parse_kv_are_rejected(endpoint: Endpoint, properties: str) -> None:
    """Properties of ``parse-kv`` that contradict each other, are unknown or have a wrong length are rejected."""
    query = f"print s = 'a=1' | parse-kv s as (a:string) with ({properties})"
    assert endpoint.query_error_code(query) in ("General_BadRequest", "BadRequest_SyntaxError")


@pytest.mark.parametrize("text", ["", "=", "a", "a=", '"', 'a="x', 'a="x\\', "  = ,", "a==b,,", "a=1" * 5000])
def test_the_parser_of_key_value_texts_ends_for_any_text(text: str) -> None:
    """The parser of key-value texts ends for any text, even with an open quote."""
    reader = KeyValueReader(text, ("a",), ",", "=", {'"': '"'}, "\\", greedy=False)
    assert set(reader.read_first_value_of_each_key()) <= {"a"}
    assert set(KeyValueReader(text, ("a",), "", "", {'"': '"'}, "", greedy=False).read_first_value_of_each_key()) <= {
        "a"
    }


def test_the_effort_of_the_parser_does_not_grow_with_missing_keys() -> None:
    """The parser reads the text once, although most of the keys and one delimiter are missing."""
    keys = ("a", *(f"k{number}" for number in range(1000)))
    text = "a=1 " * (MAX_CHARACTERS // 4)
    assert KeyValueReader(text, keys, " ", "=", {}, "", greedy=True).read_first_value_of_each_key() == {"a": "1"}
    text = "a " * (MAX_CHARACTERS // 2)
    assert KeyValueReader(text, keys, " ", "=", {"'": "'"}, "", greedy=False).read_first_value_of_each_key() == {}


def test_the_length_of_a_text_that_python_parses_is_limited() -> None:
    """A text that is too long to parse in a few milliseconds is rejected."""
    options = '{"keys": ["a"], "pair": "", "value": "", "quotes": {}, "escapes": "", "greedy": false}'
    assert read_key_values_as_json("a=1".ljust(MAX_CHARACTERS), options) == '{"a":"1"}'
    with pytest.raises(FunctionFailure, match="EMB0001"):
        read_key_values_as_json("a=1".ljust(MAX_CHARACTERS + 1), options)
