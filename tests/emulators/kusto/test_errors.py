"""Tests of error messages for invalid queries, which have the status 400."""

import httpx
import pytest

from tests.emulators.kusto.endpoints import Endpoint

INTERNALS = ("wave", "translate/", "duckdb", "SELECT", "clause", "Candidate", "expecting {", "<EOF>", "Macro", "INT64")
NAMED = [
    ("Telemetry\n| where Nope == 1", "'where' operator: Failed to resolve scalar expression named 'Nope'", "2:9"),
    (
        "Telemetry | project Number, Nope",
        "'project' operator: Failed to resolve scalar expression named 'Nope'",
        "1:29",
    ),
    ("Telemetry | extend Nope = Nope + 1", "Failed to resolve scalar expression named 'Nope'", "1:27"),
    ("Telemetry | summarize count() by Nope", "'summarize' operator: Failed to resolve", "1:34"),
    ("Telemetry | summarize sum(Nope)", "'summarize' operator: Failed to resolve scalar expression", "1:27"),
    ("Telemetry | join kind=inner (Devices | where Nope == 1) on DeviceId", "'where' operator: Failed", "1:46"),
    ("Telemetry | join kind=inner Devices on Nope", "'join' operator: Failed", "1:40"),
    ("Telemetry | where ['my col'] > 1", "named 'my col'", "1:19"),
    ("Telemetry | project-rename Other = Nope", "'project-rename' operator: Failed", "1:36"),
    ("Nope | count", "Failed to resolve table or column expression named 'Nope'", "1:1"),
    ("print 'Nope' // Nope\n| union Nope", "Failed to resolve table or column expression named 'Nope'", "2:9"),
    ("Telemetry | extend x = nosuch(Number)", "'nosuch()' is not supported", "1:24"),
    ("Telemetry | extend x = strlen(1, 2)", "SEM0219: strlen(): function expects 1 argument(s).", "1:24"),
    ("Telemetry | count;\nDevices | where nothing", "Failed to resolve", "2:17"),
    ("let x = 1; let x = 2; print x", "'let x' is not supported", "1:5"),
    ("Telemetry | evaluate nosuch(Payload)", "'evaluate nosuch' is not supported", "1:13"),
    ("Telemetry | where Number ==", "unexpected end of the query", "1:28"),
    ("Telemetry | wher Number == 1", "unexpected '| wher'", "1:11"),
    ("range x from 1 to 5", "unexpected end of the query; expected 'step'", "1:20"),
]
ILL_TYPED = [
    ("Telemetry | where Timestamp > ago(1)", "ago(): the function does not accept arguments of the types (long)"),
    ("Telemetry | where DeviceId > 5", "Cannot compare values of types string and long"),
    ("Telemetry | summarize sum(DeviceId)", "sum(): the function does not accept arguments of the types (string)"),
    ("Telemetry | where Number = 1", "a predicate of type bool is expected, not long"),
    ("print 1 + 'a'", "'a' is not a valid long"),
    ("Telemetry | where Timestamp > 'a'", "'a' is not a valid datetime"),
    ("print 9223372036854775807 + 1", "Overflow in addition of long"),
    ("print datetime(9999-12-31) + 365d", "a datetime is outside the years 1 to 9999"),
    ("Telemetry | where DeviceId matches regex '('", "missing )"),
    (
        "declare query_parameters(x:decimal = 1.5); print x",
        "the default value of a query parameter does not have its declared",
    ),
]


def get_error_message(endpoint: Endpoint, text: str) -> str:
    """Return the error message of a query, after checking rules that apply to all error messages."""
    body = {"db": "Telemetry", "csl": text}
    response = httpx.post(f"{endpoint.url}/v2/rest/query", json=body, timeout=60)
    assert response.status_code == 400, response.text
    message: str = response.json()["error"]["@message"]
    assert not [word for word in INTERNALS if word.lower() in message.lower()], message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("text", "sentence", "place"), NAMED)
def test_query_errors_contain_the_invalid_name_and_its_position(
    endpoint: Endpoint, text: str, sentence: str, place: str
) -> None:
    """The error about an invalid name or construct contains this name or construct and its position."""
    message = get_error_message(endpoint, text)
    assert sentence in message
    assert message.endswith(f"[line:position={place}]")


@pytest.mark.parametrize(("text", "sentence"), ILL_TYPED)
def test_type_and_value_errors_have_status_400(endpoint: Endpoint, text: str, sentence: str) -> None:
    """Errors about types and values have status 400 and use KQL's terms."""
    assert sentence in get_error_message(endpoint, text)


@pytest.mark.parametrize("source", ["(Telemetry)", "((Telemetry | where Number < 7))", "(union Telemetry, Devices)"])
def test_a_query_source_may_be_in_parentheses(endpoint: Endpoint, source: str) -> None:
    """The source of a query may be in parentheses."""
    bare = source.strip("()")
    assert endpoint.query_rows(f"{source} | count") == endpoint.query_rows(f"{bare} | count")
    assert endpoint.query_rows(f"let t = {source}; (t) | count") == endpoint.query_rows(f"{bare} | count")
