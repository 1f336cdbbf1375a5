"""DuckDB's errors in the words of the query language: names and types as the query has them, no SQL."""

import logging
import re

import duckdb
from duckdb_kql.types import kusto_type

from emulators.kusto.errors import (
    QueryError,
    execution_failed,
    faulty,
    internal_error,
    out_of_memory,
    runaway,
    semantic_error,
    timed_out,
    too_complex,
    unresolved,
)
from emulators.kusto.sandbox import abandon

_LOGGER = logging.getLogger(__name__)
MARK = "kql:"
"""Begins the message of an ``error()`` in the SQL that is a fault of the query; the code of the fault follows."""
RUNAWAY = "80DA0007"
"""Marks the fault of a query that would make something of a size that the engine does not hold."""
_MARKED_FAULT = re.compile(r"Invalid Input Error: kql:(?P<code>SEM\d{4}|EMB\d{4}|80DA0007):(?P<message>[^\n]*)")
_DETAIL = 300
_UNKNOWN_COLUMN = (
    re.compile(r'Referenced column "(?P<name>[^"]*)" (?:not found|was not found)'),
    re.compile(r'Column "(?P<name>[^"]*)" referenced that exists in the SELECT clause'),
    re.compile(r'Alias with name "++(?P<name>[^"]*)"++ exists'),
    re.compile(r'(?:Values list|Table) "[^"]*" does not have a column named "(?P<name>[^"]*)"'),
    re.compile(r'column "(?P<name>[^"]*)" must appear in the GROUP BY clause'),
)
# A message quotes the query. Bounds on the repetitions keep a search linear in the length of the query.
_OPERANDS = re.compile(r"argument types '(?P<name>[^(]{0,300})\((?P<types>.{0,300}?)\)'")
_COMPARED = re.compile(
    r"(?:compare|mix) values of type (?P<left>[\w ()]{1,60}?) and (?:type )?(?P<right>[\w ()]{1,60}?)(?: in | - |$)"
)
_CONVERTED = re.compile(
    r"Could not convert string (?P<value>'.{0,900}?') to (?P<type>\w+)"
    r'|invalid (?P<time>timestamp) field format: "(?P<text>[^"]*)"',
    re.DOTALL,
)
_MACRO = re.compile(r"Macro (?:kql_)?(?P<name>\w+)\(\) (?P<fault>has multiple overloads|does not support)")
_OPERATORS = {"quotient": "/", "span_divided": "/"}
_MARKED = re.compile(r"\n(?:LINE \d+: )(?P<line>[^\n]*)\n(?P<before> *)(?P<marks>\^+)\s*$")
_STORED = {
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INTEGER",
    "INT64": "BIGINT",
    "INT128": "HUGEINT",
    "BOOL": "BOOLEAN",
}
_TYPE = re.compile(
    r"\b(?:INT(?:8|16|32|64|128)|U?BIGINT|HUGEINT|INTEGER|SMALLINT|DOUBLE|FLOAT|VARCHAR|TIMESTAMP|INTERVAL|BOOLEAN|BOOL|UUID|JSON)\b"
)
_SQL = re.compile(
    r"\b(?:SELECT|FROM|GROUP BY|CAST|clause|Candidate|subquer|read_|struct|TRY|column alias|Macro)",
    re.IGNORECASE,
)


def reworded(error: duckdb.Error) -> QueryError:
    """Return what the caller is told of an error of DuckDB.

    A database that DuckDB has given up ends the process.
    """
    fault = _MARKED_FAULT.match(str(error))
    if fault is not None:
        return runaway(fault["message"]) if fault["code"] == RUNAWAY else faulty(fault["code"], fault["message"])
    text = str(error).split("\n", 1)[0]
    detail = text.partition(": ")[2] or text
    match error:
        case duckdb.InterruptException():
            return timed_out()
        case duckdb.OutOfMemoryException():
            return out_of_memory()
        case duckdb.FatalException():
            abandon(error)
        case duckdb.InternalException():
            _LOGGER.error("the query engine failed: %s", error)
        case duckdb.BinderException() | duckdb.CatalogException() | duckdb.ParserException():
            return _undecided(str(error)) or _not_bound(detail)
        case _:
            return execution_failed(_executed(detail))
    return internal_error()


def _not_bound(detail: str) -> QueryError:
    if "expression depth" in detail:
        return too_complex("the query is nested too deeply")
    for pattern in _UNKNOWN_COLUMN:
        unknown = pattern.search(detail)
        if unknown:
            return unresolved(unknown["name"])
    operands = _OPERANDS.search(detail)
    if operands:
        return semantic_error(_ill_typed(operands["name"], operands["types"]), inner="SEM0001")
    compared = _COMPARED.search(detail)
    if compared:
        types = f"{_kusto(compared['left'])} and {_kusto(compared['right'])}"
        return semantic_error(f"values of types {types} cannot be compared or combined", inner="SEM0001")
    return semantic_error(_told(detail, "an expression does not fit the place where it stands"), inner="SEM0001")


def _undecided(error: str) -> QueryError | None:
    """Return what is wrong when DuckDB cannot choose among the forms of a function by its arguments' types."""
    macro = _MACRO.search(error)
    if macro is None:
        return None
    names = _marked_names(error)
    if macro["fault"].startswith("has") and len(names) == 1:
        return unresolved(names.pop())
    name = macro["name"]
    if name in _OPERATORS:
        operator = _OPERATORS[name]
        return semantic_error(f"operator '{operator}' does not take operands of these types", inner="SEM0001")
    return semantic_error(
        f"{name}(): an argument is of a type that the function does not take", inner="SEM0001", subject=f"{name}()"
    )


def _marked_names(error: str) -> set[str]:
    marked = _MARKED.search(error)
    if marked is None:
        return set()
    start = len(marked["before"]) - (marked.start("line") - marked.start() - 1)
    return set(re.findall(r'"([^"]+)"', marked["line"][start : start + len(marked["marks"])]))


def _ill_typed(name: str, types: str) -> str:
    listed = ", ".join(_kusto(each) for each in types.split(", "))
    if re.fullmatch(r"\W+", name):
        return f"operator '{name}' does not take operands of types ({listed})"
    return f"a function does not take arguments of types ({listed})"


def _executed(detail: str) -> str:
    converted = _CONVERTED.search(detail)
    if converted:
        value = converted["value"] or f"'{converted['text']}'"
        return f"{value[:_DETAIL]} is no {_kusto(converted['type'] or converted['time'])}"
    return _told(detail, "a value does not fit the operation on it")


def _told(detail: str, otherwise: str) -> str:
    """Return DuckDB's sentence with the types' names put right, or another where it speaks of SQL."""
    if _SQL.search(detail):
        _LOGGER.info("not told to the caller: %s", detail)
        return otherwise
    told = detail.removeprefix("duckdb-kql: ").replace("DuckDB", "the engine")
    return _TYPE.sub(lambda found: _kusto(found[0]), told)[:_DETAIL].rstrip(" !.")


def _kusto(name: str) -> str:
    name = name.strip().upper()
    return (
        "string"
        if name in ("STRING_LITERAL", "VARCHAR")
        else "long"
        if name == "INTEGER_LITERAL"
        else kusto_type(_STORED.get(name, name))
    )
