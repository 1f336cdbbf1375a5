"""Tests that the engine rejects commands, constructs that it computes only approximately, and access to other data."""

from pathlib import Path

import pytest
from azure.kusto.data import KustoClient, KustoConnectionStringBuilder
from azure.kusto.data.exceptions import KustoApiError

from tests.emulators.kusto.endpoints import Endpoint

OUTSIDE = [
    "['{folder}/secret.txt']",
    "['{folder}/Devices.parquet']",
    "['/etc/passwd'] | take 1",
    "['information_schema.tables']",
    '["duckdb_settings()"]',
    "duckdb_tables",
    "sqlite_master",
    "pg_tables",
    "pragma_database_list",
    "union Telemetry, pg_tables",
    "Telemetry | join kind=inner (duckdb_columns) on $left.DeviceId == $right.table_name",
    "Telemetry | lookup duckdb_columns on $left.DeviceId == $right.table_name",
    "Telemetry | where DeviceId in ((duckdb_tables | project table_name))",
    "print x = toscalar(duckdb_settings | take 1)",
    "let Telemetry = pg_tables; Telemetry",
    "let pg_tables = pg_tables; pg_tables",
    "let a = Devices; let f = (n:long) { toscalar(duckdb_tables | count) + n }; print f(1)",
    "telemetry | count",
]
OTHER_PLACES = [
    "database('Telemetry').Telemetry",
    "database('memory').Telemetry",
    "cluster('x').database('y').T",
    "externaldata(a:string)['{folder}/secret.txt']",
    "external_table('x')",
    "evaluate python(typeof(*), 'x')",
    "evaluate http_request('http://127.0.0.1')",
    "print x = getenv('HOME')",
    "print x = read_text('{folder}/secret.txt')",
    "print x = current_setting('threads')",
]
CONTROL = [
    ".show tables",
    "  .drop table Telemetry",
    "// harmless\n.show tables",
    "Telemetry | take 1; .drop table Telemetry",
    "let x = 1; // harmless\n  .set-or-replace T <| Telemetry",
    "declare query_parameters(a:long = 1);\n.show tables",
]
INEXACT = [
    "print x = strrep('a', 5000)",
    "print x = 1tick",
    "print x = time(00:00:00.0000001)",
    "print x = 10675200d",
    "datatable(a:decimal)[1.1234567891]",
    "declare query_parameters(t:timespan = 0.0000001s); print t",
    "set query_now = datetime(2020-01-01); print now()",
]


@pytest.mark.parametrize("text", OUTSIDE)
def test_queries_can_read_only_the_served_tables(endpoint: Endpoint, folder: Path, text: str) -> None:
    """A query cannot read catalog views, files, or tables in another letter case."""
    error = endpoint.query_error(text.replace("{folder}", str(folder)))
    assert "Failed to resolve" in str(error), error
    assert "hidden" not in str(error)


@pytest.mark.parametrize("text", OTHER_PLACES)
def test_access_to_external_data_is_rejected(endpoint: Endpoint, folder: Path, text: str) -> None:
    """A query of other databases, files or network addresses, or with functions that read them, is rejected."""
    assert endpoint.query_error_code(text.replace("{folder}", str(folder))) == "BadRequest_NotSupported"


@pytest.mark.parametrize("text", CONTROL)
def test_control_commands_are_rejected(endpoint: Endpoint, text: str) -> None:
    """A control command, which begins with a dot, is rejected anywhere in the text."""
    assert endpoint.query_error_code(text) == "BadRequest_NotReadOnly"


def test_the_management_route_rejects_commands(endpoint: Endpoint) -> None:
    """The route for commands rejects control commands with the same error as the query route."""
    with (
        KustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client,
        pytest.raises(KustoApiError) as raised,
    ):
        client.execute("Telemetry", ".show tables")
    assert raised.value.get_api_error().code == "BadRequest_NotReadOnly"


def test_commands_in_literals_are_ignored(endpoint: Endpoint) -> None:
    """A string or comment may contain the text of a command."""
    assert endpoint.query_rows("print a = '; .drop table Telemetry', b = @'.show' // ; .drop") == [
        ["; .drop table Telemetry", ".show"]
    ]


@pytest.mark.parametrize("text", INEXACT)
def test_constructs_whose_result_would_differ_are_rejected(endpoint: Endpoint, text: str) -> None:
    """A construct whose result would differ from Data Explorer is rejected."""
    assert endpoint.query_error_code(text) in ("BadRequest_NotSupported", "BadRequest_SyntaxError")


def test_a_syntax_error_contains_its_position(endpoint: Endpoint) -> None:
    """The message of a syntax error contains line and column, both from 1."""
    error = endpoint.query_error("Telemetry\n| where Number ==")
    assert isinstance(error, KustoApiError)
    assert error.get_api_error().code == "BadRequest_SyntaxError"
    assert "[line:position=2:18]" in str(error)


def test_an_unknown_column_is_rejected_with_a_semantic_error(endpoint: Endpoint) -> None:
    """The error about an unknown column contains its name and no SQL."""
    error = endpoint.query_error("Telemetry | where Nope == 1")
    assert error.is_semantic_error()
    expected = "SEM0100: 'where' operator: Failed to resolve scalar expression named 'Nope' [line:position=1:19]"
    assert expected in str(error)
    assert "SELECT" not in str(error)


def test_a_query_of_another_database_is_rejected(endpoint: Endpoint) -> None:
    """A query of a database other than the emulator's is rejected."""
    with (
        KustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client,
        pytest.raises(KustoApiError) as raised,
    ):
        client.execute_query("Other", "print 1")
    assert raised.value.get_api_error().code == "BadRequest_DatabaseNotExist"


@pytest.mark.parametrize("query", ["let a = 1;", "let a = 1; let f = (n:long) { n };"])
def test_a_query_without_a_tabular_expression_is_rejected(endpoint: Endpoint, query: str) -> None:
    """A query of let statements without a tabular expression is rejected with the reason."""
    message = str(endpoint.query_error(query))
    assert "The query has no expression after its let statements" in message
    assert "EMB0001" not in message
    assert endpoint.query_error_code(query) == "General_BadRequest"
