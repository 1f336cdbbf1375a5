"""SQL that rejects a query by types which only DuckDB knows, when it binds the SQL.

``typeof()`` is a constant at that time. The optimizer therefore removes a guard whose test fails, so that it costs
nothing.
"""

from duckdb_kql import translate

from emulators.kusto.library_errors import MARK

_MAX_CHARACTERS = 240
"""Maximum length of a guarded expression. The guard repeats it, so that longer ones would double at every level."""
_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE", "HUGEINT", "UBIGINT", "SMALLINT", "UINTEGER", "FLOAT", "TINYINT", "UHUGEINT")
TEXTS = ("VARCHAR",)
DYNAMICS = ("JSON",)


def render_error(code: str, message: str) -> str:
    """Return SQL that fails with a message, which becomes an error of the query."""
    return f"error({translate.quote_string(f'{MARK}{code}:{message}')})"


def add_guard(test: str, failure: str, sql: str) -> str:
    """Return ``sql`` with a guard that fails if the test of types is true."""
    return f"CASE WHEN {test} THEN {failure} ELSE {sql} END" if test else sql


def render_type_test(sql: str, types: tuple[str, ...]) -> str:
    """Return a test for one of several types; empty if the expression is too long to be repeated."""
    if len(sql) > _MAX_CHARACTERS:
        return ""
    listed = ", ".join(f"'{each}'" for each in types)
    return f"typeof({sql}) IN ({listed})" if len(types) > 1 else f"typeof({sql}) = {listed}"


def render_number_test(sql: str) -> str:
    """Return a test for a number; empty if the expression is too long to be repeated."""
    test = render_type_test(sql, _NUMBERS)
    return test and f"({test} OR typeof({sql}) LIKE 'DECIMAL%')"


def join_with_or(*tests: str) -> str:
    """Return the disjunction of the tests that are not empty."""
    return " OR ".join(f"({test})" for test in tests if test)


def join_with_and(*tests: str) -> str:
    """Return the conjunction of the tests, empty if one of them is empty."""
    return " AND ".join(tests) if all(tests) else ""
