"""SQL guards: CASE expressions that reject a query if DuckDB finds a wrong type for a column.

DuckDB evaluates the test ``typeof(x) = ...`` when it binds the SQL, and removes the guard if the test is false.
Therefore a guard costs no time during execution.
"""

from duckdb_kql import translate

from emulators.kusto.library_errors import MARK

_MAX_CHARACTERS = 240
"""Maximum length of a guarded SQL expression. A guard repeats the expression, so nested guards would double the SQL."""
_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE", "HUGEINT", "UBIGINT", "SMALLINT", "UINTEGER", "FLOAT", "TINYINT", "UHUGEINT")
TEXTS = ("VARCHAR",)
DYNAMICS = ("JSON",)


def render_error(code: str, message: str) -> str:
    """Return SQL that raises a query error with an inner error code and a message."""
    return f"error({translate.quote_string(f'{MARK}{code}:{message}')})"


def add_guard(test: str, failure: str, sql: str) -> str:
    """Return SQL that evaluates ``failure`` if the type test is true, else ``sql``; an empty test counts as false."""
    return f"CASE WHEN {test} THEN {failure} ELSE {sql} END" if test else sql


def render_type_test(sql: str, types: tuple[str, ...]) -> str:
    """Return SQL that tests whether an expression has one of several types.

    If the expression is too long to be repeated, return an empty text, which means that there is no test.
    """
    if len(sql) > _MAX_CHARACTERS:
        return ""
    listed = ", ".join(f"'{each}'" for each in types)
    return f"typeof({sql}) IN ({listed})" if len(types) > 1 else f"typeof({sql}) = {listed}"


def render_number_test(sql: str) -> str:
    """Return SQL that tests whether an expression is a number.

    An empty text (no test) if the expression is too long.
    """
    test = render_type_test(sql, _NUMBERS)
    return test and f"({test} OR typeof({sql}) LIKE 'DECIMAL%')"


def join_with_or(*tests: str) -> str:
    """Join the SQL of type tests by OR; empty tests are omitted."""
    return " OR ".join(f"({test})" for test in tests if test)


def join_with_and(*tests: str) -> str:
    """Join the SQL of type tests by AND; if one test is empty, return an empty text, which means no test."""
    return " AND ".join(tests) if all(tests) else ""
