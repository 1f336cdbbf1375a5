"""Converts exceptions of DuckDB and of the translator library to query errors that use the terms of KQL.

The messages contain names and types from the query, but neither SQL nor internals of the libraries.
"""

import logging
import re
from typing import TYPE_CHECKING, NamedTuple

from duckdb_kql.errors import KqlError, KqlSchemaError, KqlSyntaxError, KqlUnsupportedError, SourceSpan
from duckdb_kql.types import kusto_type

from emulators.kusto.errors import (
    LineAndColumn,
    QueryError,
    error_from_code,
    execution_error,
    internal_error,
    out_of_memory_error,
    runaway_query_error,
    semantic_error,
    syntax_error,
    timeout_error,
    too_complex_error,
    unresolved_name_error,
    unsupported_error,
)
from emulators.kusto.sandbox import abort_process

if TYPE_CHECKING:
    import duckdb

_LOGGER = logging.getLogger(__name__)
MARK = "kql:"
"""Prefix of DuckDB's message if the SQL called ``error()`` to report a fault of the query; the inner code follows."""
RUNAWAY = "80DA0007"
"""Inner code of the error for a query that creates a value which is too large for the engine."""
_MARKED_FAULT = re.compile(
    r"Invalid Input Error: (?:Python exception occurred while executing the UDF: \w+: )?"
    r"kql:(?P<code>SEM\d{4}|EMB\d{4}|80DA0007):(?P<message>[^\n]*)"
)
_PYTHON_MEMORY = "UDF: MemoryError"
"""Part of DuckDB's message if a function in Python runs out of memory."""
_DETAIL = 300
_NO_QUERY = "no query statement found"
"""Reason that the library states for a text that has only statements such as ``let``."""
_UNKNOWN_COLUMN = (
    re.compile(r'Referenced column "(?P<name>[^"]*)" (?:not found|was not found)'),
    re.compile(r'Column "(?P<name>[^"]*)" referenced that exists in the SELECT clause'),
    re.compile(r'Alias with name "++(?P<name>[^"]*)"++ exists'),
    re.compile(r'(?:Values list|Table) "[^"]*" does not have a column named "(?P<name>[^"]*)"'),
    re.compile(r'column "(?P<name>[^"]*)" must appear in the GROUP BY clause'),
)
# A message quotes the query. Limits on the repetitions make a search linear in the length of the query.
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


def error_from_duckdb(error: "duckdb.Error") -> QueryError:
    """Convert an exception of DuckDB to a query error; end the process if DuckDB has invalidated the database."""
    import duckdb  # noqa: PLC0415  translator processes load this module without DuckDB

    fault = _MARKED_FAULT.match(str(error))
    if fault is not None:
        return (
            runaway_query_error(fault["message"])
            if fault["code"] == RUNAWAY
            else error_from_code(fault["code"], fault["message"])
        )
    text = str(error).split("\n", 1)[0]
    detail = text.partition(": ")[2] or text
    match error:
        case duckdb.InterruptException():
            return timeout_error()
        case _ if isinstance(error, duckdb.OutOfMemoryException) or _PYTHON_MEMORY in text:
            return out_of_memory_error()
        case duckdb.FatalException():
            abort_process(error)
        case duckdb.InternalException():
            _LOGGER.error("DuckDB reported an internal error: %s", error)
        case duckdb.BinderException() | duckdb.CatalogException() | duckdb.ParserException():
            return _find_argument_types_error(str(error)) or _error_from_binding_message(detail)
        case _:
            return execution_error(_describe_invalid_value(detail))
    return internal_error()


def _error_from_binding_message(message: str) -> QueryError:
    if "expression depth" in message:
        return too_complex_error("the query is nested too deeply")
    for pattern in _UNKNOWN_COLUMN:
        unknown = pattern.search(message)
        if unknown:
            return unresolved_name_error(unknown["name"])
    operands = _OPERANDS.search(message)
    if operands:
        return semantic_error(_describe_unaccepted_operand_types(operands["name"], operands["types"]), inner="SEM0001")
    compared = _COMPARED.search(message)
    if compared:
        types = f"{_kusto_type_from_duckdb(compared['left'])} and {_kusto_type_from_duckdb(compared['right'])}"
        return semantic_error(f"values of types {types} cannot be compared or combined", inner="SEM0001")
    return semantic_error(
        _replace_internal_terms(message, "the query contains an expression where it is not allowed"), inner="SEM0001"
    )


def _find_argument_types_error(message: str) -> QueryError | None:
    """Return the error for a DuckDB macro call with unaccepted argument types; None if the error has another cause."""
    macro = _MACRO.search(message)
    if macro is None:
        return None
    names = _extract_caret_marked_names(message)
    if macro["fault"].startswith("has") and len(names) == 1:
        return unresolved_name_error(names.pop())
    name = macro["name"]
    if name in _OPERATORS:
        operator = _OPERATORS[name]
        return semantic_error(f"operator '{operator}' does not accept operands of these types", inner="SEM0001")
    return semantic_error(
        f"{name}(): an argument has a type that the function does not accept", inner="SEM0001", subject=f"{name}()"
    )


def _extract_caret_marked_names(message: str) -> set[str]:
    marked = _MARKED.search(message)
    if marked is None:
        return set()
    start = len(marked["before"]) - (marked.start("line") - marked.start() - 1)
    return set(re.findall(r'"([^"]+)"', marked["line"][start : start + len(marked["marks"])]))


def _describe_unaccepted_operand_types(operator: str, duckdb_types: str) -> str:
    listed = ", ".join(_kusto_type_from_duckdb(each) for each in duckdb_types.split(", "))
    if re.fullmatch(r"\W+", operator):
        return f"operator '{operator}' does not accept operands of types ({listed})"
    return f"a function does not accept arguments of types ({listed})"


def _describe_invalid_value(message: str) -> str:
    converted = _CONVERTED.search(message)
    if converted:
        value = converted["value"] or f"'{converted['text']}'"
        return f"{value[:_DETAIL]} is not a valid {_kusto_type_from_duckdb(converted['type'] or converted['time'])}"
    return _replace_internal_terms(message, "a value is not valid for this operation")


def _replace_internal_terms(message: str, default: str) -> str:
    """Replace DuckDB's type names in a message by Kusto's; return ``default`` if the message contains SQL."""
    if _SQL.search(message):
        _LOGGER.info("message withheld from the caller: %s", message)
        return default
    renamed = message.removeprefix("duckdb-kql: ").replace("DuckDB", "the engine")
    return _TYPE.sub(lambda found: _kusto_type_from_duckdb(found[0]), renamed)[:_DETAIL].rstrip(" !.")


def _kusto_type_from_duckdb(duckdb_type: str) -> str:
    duckdb_type = duckdb_type.strip().upper()
    return (
        "string"
        if duckdb_type in ("STRING_LITERAL", "VARCHAR")
        else "long"
        if duckdb_type == "INTEGER_LITERAL"
        else kusto_type(_STORED.get(duckdb_type, duckdb_type))
    )


_MOST_ALTERNATIVES = 5
_INTERNAL = re.compile(
    r"this wave|Wave 1|translate/|duckdb_kql|functions=|schema=|internal:|to_sql|measured|known:|DuckDB's"
)
_ARGUMENTS = re.compile(r"\b(?P<name>\w++)\(\) takes \((?P<counts>[\d, ]+)\) argument")
_UNEXPECTED = re.compile(
    r"(?:mismatched|extraneous) input '(?P<found>(?:(?!' expecting ).)*+)' expecting (?P<expected>.*)", re.DOTALL
)
_UNRECOGNISED = re.compile(r"token recognition error at: '(?P<found>.*)'", re.DOTALL)
_ALTERNATIVE = re.compile(r"'(?:[^']|'(?=[^,}])){1,100}'|<EOF>|[A-Z_]+")
_WORD = re.compile(r"evaluate\s+\w+|[\w-]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_from_translator(error: KqlError, kql_text: str) -> QueryError:
    """Convert an exception of the translator library to a query error.

    Args:
        error: the exception to convert.
        kql_text: KQL text of the query, for the position of the error.
    """
    if isinstance(error, KqlSyntaxError):
        return _to_syntax_error(error, kql_text)
    if isinstance(error, KqlUnsupportedError):
        return _to_unsupported_error(error, kql_text)
    if isinstance(error, KqlSchemaError) and error.name == "<default>":
        return semantic_error("the default value of a query parameter does not have its declared type", inner="SEM0219")
    if isinstance(error, KqlSchemaError):
        return semantic_error(
            ": ".join(filter(None, (error.name[:_DETAIL], _get_hint_for_users_or_empty(error.hint)))),
            subject=error.name,
        )
    return semantic_error(_get_hint_for_users_or_empty(str(error)) or "the query contains an invalid name or type")


def _to_syntax_error(error: KqlSyntaxError, kql_text: str) -> QueryError:
    if not error.diagnostics:
        return syntax_error("the text is not a KQL query")
    first = error.diagnostics[0]
    return syntax_error(
        _describe_syntax_error(first.message, _get_rest_of_line_or_empty(kql_text, first.span)),
        _find_source_position(first.span),
    )


def _describe_syntax_error(message: str, remaining_text: str) -> str:
    unrecognised = _UNRECOGNISED.fullmatch(message)
    if unrecognised:
        found = unrecognised["found"]
        ends = "a string literal is not closed, or contains an invalid escape"
        return (
            f"{ends}: {_shorten_text(found)}"
            if found.lstrip("hH@")[:1] in "'\"`~"
            else f"unexpected '{_shorten_text(found)}'"
        )
    unexpected = _UNEXPECTED.fullmatch(message)
    if unexpected is None:
        return _describe_unexpected_text(remaining_text)
    return _describe_unexpected_text(remaining_text) + _describe_expected_tokens(unexpected["expected"])


def _describe_unexpected_text(remaining_text: str) -> str:
    word = re.match(r"\|\s*[\w-]*|[\w-]+|\S", remaining_text.lstrip())
    return f"unexpected '{_shorten_text(word[0])}'" if word else "unexpected end of the query"


def _describe_expected_tokens(expected: str) -> str:
    found = [each for each in _ALTERNATIVE.findall(expected) if each not in ("<EOF>", "';'")]
    if not found or len(found) > _MOST_ALTERNATIVES or "<EOF>" in expected:
        return ""
    words = (each.lower().replace("literal", " literal") if each.isupper() else each for each in found)
    return f"; expected {' or '.join(words)}"


def _to_unsupported_error(error: KqlUnsupportedError, kql_text: str) -> QueryError:
    arguments = _ARGUMENTS.search(error.hint or "")
    if arguments:
        counts = " or ".join(re.findall(r"\d+", arguments["counts"]))
        return semantic_error(
            f"{arguments['name']}(): function expects {counts} argument(s).",
            inner="SEM0219",
            position=_find_source_position(error.span),
            subject=f"{arguments['name']}()",
        )
    if error.construct == "statement" and error.hint == _NO_QUERY:
        return semantic_error("The query has no expression after its let statements; add one, such as a table's name")
    if "(SEM0100)" in (error.hint or ""):
        return unresolved_name_error(error.construct.rpartition(":")[2])
    name, subject = _describe_unsupported_construct(error.construct, _get_rest_of_line_or_empty(kql_text, error.span))
    return unsupported_error(
        name[:_DETAIL], _get_hint_for_users_or_empty(error.hint), _find_source_position(error.span), subject
    )


class _UnsupportedConstruct(NamedTuple):
    """Description of an unsupported KQL construct, and the name whose position the error reports; "" for none."""

    description: str
    subject: str


def _describe_unsupported_construct(construct: str, remaining_text: str) -> _UnsupportedConstruct:
    """Describe an unsupported KQL construct.

    Args:
        construct: kind and name of the construct, as the translator library reports them.
        remaining_text: text of the query from the construct to the end of the line; empty if its position is unknown.
    """
    kind, _, name = construct.partition(":")
    if kind in ("function", "aggregate", "let function") and name:
        return _UnsupportedConstruct(f"{name}()", f"{name}()")
    if kind == "let" and name:
        return _UnsupportedConstruct(f"let {name}", name)
    if kind == "literal":
        return _UnsupportedConstruct(f"this {name} literal", "")
    if kind.endswith("Operator") and remaining_text:
        word = _WORD.match(remaining_text)
        return _UnsupportedConstruct(word[0] if word else kind, "")
    if kind in ("expression", "source", "operator", "unary"):
        return _UnsupportedConstruct(_CAMEL.sub(" ", name).lower(), "")
    return _UnsupportedConstruct(f"{kind} {name}".strip() if name else kind, f"{kind}()")


def _get_hint_for_users_or_empty(hint: str | None) -> str:
    """Return the translator library's hint if it helps users; an empty text if it is about the library's internals."""
    if hint is None or _INTERNAL.search(hint):
        return ""
    return hint[:_DETAIL].replace("DuckDB", "the engine")


def _get_rest_of_line_or_empty(kql_text: str, span: SourceSpan | None) -> str:
    lines = kql_text.split("\n")
    return lines[span.line - 1][span.column :] if span is not None and span.line <= len(lines) else ""


def _find_source_position(span: SourceSpan | None) -> LineAndColumn | None:
    return None if span is None else (span.line, span.column + 1)


def _shorten_text(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004  enough to recognise the text
