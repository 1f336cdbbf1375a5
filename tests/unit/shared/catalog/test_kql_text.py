"""Putting our statements into a query, and refusing what would slip past them."""

import pytest

from shared.catalog.kql_text import check_read_only, check_time_range, compose_query
from shared.errors import WorkspaceError

WINDOW = "let Telemetry = Telemetry | where Timestamp between (_oi_from .. _oi_to);"


def code(check: object, kql: str) -> str:
    """Return the code that a check refuses a text with, empty when it passes."""
    try:
        check(kql)  # type: ignore[operator]
    except WorkspaceError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    "kql",
    [
        ".show tables",
        "  .drop table Telemetry",
        "// a comment\n.show tables",
        "Telemetry | count; .drop table Telemetry",
        "let x = 1;\n// c\n .set T <| print 1",
        "print 'a;b' ; .show tables",
    ],
)
def test_control_commands_are_refused(kql: str) -> None:
    """A command is found behind comments, strings and other statements."""
    assert code(check_read_only, kql) == "QUERY_NOT_READ_ONLY"


@pytest.mark.parametrize("kql", ["Telemetry | where a == '; .drop'", "Telemetry // ;.drop\n| take 1", "print .5"])
def test_a_dot_inside_a_string_or_number_is_no_command(kql: str) -> None:
    """What only looks like a command passes."""
    assert code(check_read_only, kql) == ""


@pytest.mark.parametrize("kql", ["", "  \n", "// nothing", ";;"])
def test_an_empty_query_is_invalid(kql: str) -> None:
    """There must be something to run."""
    assert code(check_read_only, kql) == "QUERY_INVALID"


def test_our_statements_go_before_the_callers_text() -> None:
    """Declarations and the window stand on a line of their own, so that positions shift by one line."""
    composed = compose_query("Telemetry | count", "device:string, _oi_from:datetime", WINDOW)
    assert composed.text == (f"declare query_parameters(device:string, _oi_from:datetime);{WINDOW}\nTelemetry | count")
    assert composed.lines_before == 1
    assert compose_query("print 1", "", "").text == "print 1"


@pytest.mark.parametrize(
    ("kql", "expected"),
    [
        (
            "declare query_parameters(a:string = ')');\nTelemetry | where x == a",
            f"declare query_parameters(_f:datetime, a:string = ')');{WINDOW}\nTelemetry | where x == a",
        ),
        (
            "// declare query_parameters(z:int);\ndeclare  query_parameters ( ) ; Telemetry",
            f"// declare query_parameters(z:int);\ndeclare  query_parameters (_f:datetime ) ;{WINDOW} Telemetry",
        ),
        (
            "declare query_parameters(t:timespan = time(1.00:00:00));T",
            f"declare query_parameters(_f:datetime, t:timespan = time(1.00:00:00));{WINDOW}T",
        ),
    ],
)
def test_a_declare_statement_of_the_query_takes_ours_in(kql: str, expected: str) -> None:
    """A query has one declare statement at most; ours merges into it."""
    assert compose_query(kql, "_f:datetime", WINDOW).text == expected


def test_a_declare_statement_without_end_is_invalid() -> None:
    """An unfinished declare statement is refused before it reaches the engine."""
    assert code(lambda kql: compose_query(kql, "a:int", ""), "declare query_parameters(b:int") == "QUERY_INVALID"


@pytest.mark.parametrize(
    "kql",
    [
        "search 'x'",
        "find in (Telemetry) where a == 1",
        "union *",
        "union Tele*",
        "Telemetry | union withsource=s *",
        "union A | union *",
        "materialized_view('Telemetry') | count",
        "table('Telemetry') | count",
        "database('x').Telemetry",
        "cluster('y').database('x').Telemetry",
        "let Telemetry = datatable(x:int)[1]; Telemetry",
        "let ['Telemetry'] = print 1; Telemetry",
    ],
)
def test_what_would_slip_past_a_time_range_is_refused(kql: str) -> None:
    """With a timeRange, every way round the filtered table is an error, not an unfiltered answer."""
    assert code(check_time_range, kql) == "TIME_RANGE_NOT_APPLICABLE"


@pytest.mark.parametrize(
    "kql",
    [
        "Telemetry | where Payload.search == 1 | summarize n = count() * 2 by DeviceId",
        "union Telemetry, (Telemetry | where x == 1) | extend y = 2 * 3",
        "Telemetry | where DeviceId has 'find *'",
        "let t = Telemetry; t | count",
        "Telemetry | extend p = todouble(Payload['Pressure']), l = dynamic(['a', 'b'])",
        "['Telemetry'] | count",
    ],
)
def test_ordinary_queries_take_a_time_range(kql: str) -> None:
    """Names and arithmetic that only resemble a way round are fine."""
    assert code(check_time_range, kql) == ""
