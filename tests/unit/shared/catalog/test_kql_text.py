"""Tests of inserting statements into a query, and of rejecting queries that could bypass them."""

import pytest

from shared.catalog.kql_text import check_query_is_read_only, compose_query, reject_time_range_bypass
from shared.errors import WorkspaceError

WINDOW = "let Telemetry = Telemetry | where Timestamp between (_oi_from .. _oi_to);"


def get_error_code(check: object, kql: str) -> str:
    """Return the error code of a check; empty if it succeeds."""
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
def test_control_commands_are_rejected(kql: str) -> None:
    """A control command is rejected, even if it follows comments, strings or other statements."""
    assert get_error_code(check_query_is_read_only, kql) == "QUERY_NOT_READ_ONLY"


@pytest.mark.parametrize("kql", ["Telemetry | where a == '; .drop'", "Telemetry // ;.drop\n| take 1", "print .5"])
def test_dot_in_string_or_number_is_accepted(kql: str) -> None:
    """A dot in a string or number is accepted, although it looks like a control command."""
    assert get_error_code(check_query_is_read_only, kql) == ""


@pytest.mark.parametrize("kql", ["", "  \n", "// nothing", ";;"])
def test_empty_query_is_rejected(kql: str) -> None:
    """A query without a statement is rejected."""
    assert get_error_code(check_query_is_read_only, kql) == "QUERY_INVALID"


def test_statements_are_inserted_before_the_query() -> None:
    """Declarations and the filter are inserted as one line, so that all positions shift by one line."""
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
def test_declarations_are_merged_into_declare_statement(kql: str, expected: str) -> None:
    """A query has at most one declare statement; further declarations are added to it."""
    assert compose_query(kql, "_f:datetime", WINDOW).text == expected


def test_unclosed_declare_statement_is_rejected() -> None:
    """An unclosed declare statement is rejected before it reaches the engine."""
    assert (
        get_error_code(lambda kql: compose_query(kql, "a:int", ""), "declare query_parameters(b:int") == "QUERY_INVALID"
    )


@pytest.mark.parametrize(
    "kql",
    [
        "search 'x'",
        "find in (Telemetry) where a == 1",
        "union *",
        "union Tele*",
        "Telemetry | union withsource=s *",
        "union A | union *",
        "union (Telemetry | take 0), Tele*",
        "union (print x=1), *",
        "union kind=outer (A | where x in (1, 2)), B, ((C)), T*",
        "Telemetry | union (print x=')'), // )\n *",
        "print n = toscalar(union (print x=1), * | count)",
        "(union (A | union (B)), *)",
        "union (A), [T*]",
        "union isfuzzy=bool(|) *",
        "union\u200bT*",
        "let f = () { union (A), * }; f()",
        "let f = () { search * }; f()",
        "Telemetry | partition by DeviceId { find in (T*) where x == 1 }",
        "let t = Telemetry; declare query_parameters(a:int = 1); t",
        "let f = () { declare query_parameters(a:int = 1); Telemetry }; Telemetry",
        "Telemetry; declare\ufeffquery_parameters(a:int = 1); print 1",
        "union (A | where false and x > datetime((()), *",
        "['table']('Telemetry') | count",
        "[@\"materialized_view\"] ('Telemetry')",
        "['Table' ]('Telemetry')",
        "table\u200b('Telemetry')",
        "graph('plant')",
        "materialized-view-combine('v') base (A) delta (B) aggregations (summarize count())",
        "materialized_view('Telemetry') | count",
        "table('Telemetry') | count",
        "database('x').Telemetry",
        "cluster('y').database('x').Telemetry",
        "let Telemetry = datatable(x:int)[1]; Telemetry",
        "let ['Telemetry'] = print 1; Telemetry",
        "let['Telemetry'] = print 1; Telemetry",
        "let\u200bTelemetry = print 1; Telemetry",
    ],
)
def test_queries_that_bypass_time_range_are_rejected(kql: str) -> None:
    """With a timeRange, a query that could read the table without the time filter is rejected."""
    assert get_error_code(reject_time_range_bypass, kql) == "TIME_RANGE_NOT_APPLICABLE"


@pytest.mark.parametrize(
    "kql",
    [
        "Telemetry | where Payload.search == 1 | summarize n = count() * 2 by DeviceId",
        "union Telemetry, (Telemetry | where x == 1) | extend y = 2 * 3",
        "Telemetry | where DeviceId has 'find *'",
        "let t = Telemetry; t | count",
        "Telemetry | extend p = todouble(Payload['Pressure']), l = dynamic(['a', 'b'])",
        "['Telemetry'] | count",
        "union Telemetry, (range x from 1 to 2 * 3 step 1), (print y = 2 * 3)",
        "union (Telemetry | summarize count()) | extend x = (a) * 2",
        "Telemetry | where toscalar(union A, B | count) * 2 > x",
        "declare query_parameters(a:datetime = datetime(2026-01-01)); Telemetry | where Timestamp > a",
        "set query_datascope = hotcache; declare query_parameters(a:int = 1); Telemetry",
        "Telemetry | where Timestamp > datetime(2026-01-01) and DeviceId in ('a', '\u00e4')",
        "Telemetry | partition by ['Device Id'] (take 1)",
        "union withsource=['src'] (Telemetry | take 1)",
    ],
)
def test_ordinary_queries_accept_time_range(kql: str) -> None:
    """With a timeRange, names and arithmetic that look like a bypass of the filter are accepted."""
    assert get_error_code(reject_time_range_bypass, kql) == ""
