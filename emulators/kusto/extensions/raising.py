"""Refusals that wait for a type: DuckDB knows it when it binds the SQL, the translator does not.

``typeof()`` is a constant by then, so a guard costs nothing where it holds: the optimizer leaves what it guards.
"""

from duckdb_kql import translate

from emulators.kusto.engine_errors import MARK

_LONGEST = 240
"""Characters of a guarded expression, which is written again: longer ones would double at every level."""
_NUMBERS = ("BIGINT", "INTEGER", "DOUBLE", "HUGEINT", "UBIGINT", "SMALLINT", "UINTEGER", "FLOAT", "TINYINT", "UHUGEINT")
TEXTS = ("VARCHAR",)
DYNAMICS = ("JSON",)


def raising(code: str, message: str) -> str:
    """Return SQL that fails with a message, which the caller is told as a fault of the query."""
    return f"error({translate.quote_string(f'{MARK}{code}:{message}')})"


def guarded(test: str, failure: str, sql: str) -> str:
    """Return ``sql``, or the failure where the test on types holds."""
    return f"CASE WHEN {test} THEN {failure} ELSE {sql} END" if test else sql


def is_of(sql: str, types: tuple[str, ...]) -> str:
    """Return a test that an expression is of one of several types; empty where it is too long to be written twice."""
    if len(sql) > _LONGEST:
        return ""
    listed = ", ".join(f"'{each}'" for each in types)
    return f"typeof({sql}) IN ({listed})" if len(types) > 1 else f"typeof({sql}) = {listed}"


def is_number(sql: str) -> str:
    """Return a test that an expression is a number; empty where it is too long to be written twice."""
    of_them = is_of(sql, _NUMBERS)
    return of_them and f"({of_them} OR typeof({sql}) LIKE 'DECIMAL%')"


def either(*tests: str) -> str:
    """Return the disjunction of the tests that there are."""
    return " OR ".join(f"({test})" for test in tests if test)


def both(*tests: str) -> str:
    """Return the conjunction of tests; empty where one of them is."""
    return " AND ".join(tests) if all(tests) else ""
