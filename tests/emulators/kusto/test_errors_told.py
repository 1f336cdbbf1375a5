"""What callers are told: the place, the query language's words, a client error for every fault of the query."""

import httpx
import pytest

from emulators.kusto.errors import semantic_error, unresolved, unsupported
from emulators.kusto.positions import placed
from emulators.kusto.translator_process import _answer
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
    ("let a = (1); Telemetry | count;\nDevices | count", "'a second query statement' is not supported", "2:1"),
    ("let x = 1; let x = 2; print x", "'let x' is not supported", "1:5"),
    ("Telemetry | evaluate nosuch(Payload)", "'evaluate nosuch' is not supported", "1:13"),
    ("Telemetry | reduce by DeviceId", "'reduce' is not supported", "1:13"),
    ("Telemetry | where Number ==", "unexpected end of the query", "1:28"),
    ("Telemetry | wher Number == 1", "unexpected '| wher'", "1:11"),
    ("range x from 1 to 5", "unexpected end of the query; expected 'step'", "1:20"),
]
ILL_TYPED = [
    ("Telemetry | where Timestamp > ago(1)", "operator '-' does not take operands of types (datetime, long)"),
    ("Telemetry | where DeviceId > 5", "Cannot compare values of types string and long"),
    ("Telemetry | summarize sum(DeviceId)", "sum(): an argument is of a type that the function does not take"),
    ("Telemetry | where Number = 1", "a predicate of type bool is expected, not long"),
    ("print 1 + 'a'", "'a' is no long"),
    ("Telemetry | where Timestamp > 'a'", "'a' is no datetime"),
    ("print 9223372036854775807 + 1", "Overflow in addition of long"),
    ("print datetime(9999-12-31) + 365d", "an instant lies outside the years 1 to 9999"),
    ("Telemetry | where DeviceId matches regex '('", "missing )"),
    ("declare query_parameters(x:decimal = 1.5); print x", "the default of a query parameter is not of its declared"),
]


def told(endpoint: Endpoint, text: str) -> str:
    """Return the message of a refused query, after the checks that hold for every one."""
    response = httpx.post(f"{endpoint.url}/v2/rest/query", json={"db": "Telemetry", "csl": text})
    assert response.status_code == 400, response.text
    message: str = response.json()["error"]["@message"]
    assert not [word for word in INTERNALS if word.lower() in message.lower()], message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("text", "sentence", "place"), NAMED)
def test_the_place_of_what_is_wrong_is_told(endpoint: Endpoint, text: str, sentence: str, place: str) -> None:
    """An error about a name or a construct says which and where it stands."""
    message = told(endpoint, text)
    assert sentence in message
    assert message.endswith(f"[line:position={place}]")


@pytest.mark.parametrize(("text", "sentence"), ILL_TYPED)
def test_values_that_do_not_fit_are_the_querys_fault(endpoint: Endpoint, text: str, sentence: str) -> None:
    """Types and values that do not fit are client errors in the query language's words."""
    assert sentence in told(endpoint, text)


@pytest.mark.parametrize("source", ["(Telemetry)", "((Telemetry | where Number < 7))", "(union Telemetry, Devices)"])
def test_a_source_may_stand_in_parentheses(endpoint: Endpoint, source: str) -> None:
    """Parentheses around what a query begins with change nothing."""
    bare = source.strip("()")
    assert endpoint.rows(f"{source} | count") == endpoint.rows(f"{bare} | count")
    assert endpoint.rows(f"let t = {source}; (t) | count") == endpoint.rows(f"{bare} | count")


def test_a_failure_of_the_translator_itself_is_a_client_error(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the translator raises, the caller is told that this query cannot be translated, and the log why."""
    reply, afford = _answer("T | join kind=inner (T) on a", {"T": 5}, [], {})  # type: ignore[dict-item]  # no columns: it fails
    assert afford
    assert b'"status":400' in reply
    assert b"EMB0005" in reply
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("text", "subject", "place"),
    [
        ("T | extend a = b.a | where a", "a", (1, 28)),
        ("T | where f == f(1)", "f()", (1, 16)),
        ("T // a\n| where 'a' == a", "a", (2, 16)),
        ("T | where 'it\\'s a' == a", "a", (1, 24)),
        ("T | where @'a\\' == a", "a", (1, 20)),
        ("T | where ```\na\n``` == a", "a", (3, 8)),
        ("T | extend a = 1", "a", (1, 12)),
        ("T | where x", "a", None),
    ],
)
def test_a_name_is_found_outside_of_strings_and_comments(
    text: str, subject: str, place: tuple[int, int] | None
) -> None:
    """The place is the first one where the name is read; where it is only assigned, that one."""
    assert placed(semantic_error("x", subject=subject), text).position == place


def test_a_known_place_stays(endpoint: Endpoint) -> None:
    """An error that has its place keeps it, and one whose subject is nowhere has none."""
    assert placed(unsupported("a", position=(7, 7)), "a").position == (7, 7)
    assert placed(unresolved("zz"), "T | where a").position is None
