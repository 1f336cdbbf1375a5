"""The translator library's errors in the words of the query language: what is wrong, without how it was found."""

import re

from duckdb_kql.errors import KqlError, KqlSchemaError, KqlSyntaxError, KqlUnsupportedError, SourceSpan

from emulators.kusto.errors import QueryError, semantic_error, syntax_error, unresolved, unsupported
from emulators.kusto.positions import second_statement

_DETAIL = 300
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


def reworded(error: KqlError, text: str) -> QueryError:
    """Return what the caller is told of an error of the translator.

    Args:
        error: as the library raised it.
        text: the query.
    """
    if isinstance(error, KqlSyntaxError):
        return _syntax(error, text)
    if isinstance(error, KqlUnsupportedError):
        return _unsupported(error, text)
    if isinstance(error, KqlSchemaError) and error.name == "<default>":
        return semantic_error("the default of a query parameter is not of its declared type", inner="SEM0219")
    if isinstance(error, KqlSchemaError):
        return semantic_error(": ".join(filter(None, (error.name[:_DETAIL], _reason(error.hint)))), subject=error.name)
    return semantic_error(_reason(str(error)) or "the query does not bind")


def _syntax(error: KqlSyntaxError, text: str) -> QueryError:
    if not error.diagnostics:
        return syntax_error("the text is no query")
    first = error.diagnostics[0]
    return syntax_error(_syntax_sentence(first.message, _line_from(text, first.span)), _position(first.span))


def _syntax_sentence(message: str, rest: str) -> str:
    unrecognised = _UNRECOGNISED.fullmatch(message)
    if unrecognised:
        found = unrecognised["found"]
        ends = "a string literal is not closed, or holds an escape that does not exist"
        return f"{ends}: {_short(found)}" if found.lstrip("hH@")[:1] in "'\"`~" else f"unexpected '{_short(found)}'"
    unexpected = _UNEXPECTED.fullmatch(message)
    if unexpected is None:
        return _unexpected(rest)
    return _unexpected(rest) + _alternatives(unexpected["expected"])


def _unexpected(rest: str) -> str:
    word = re.match(r"\|\s*[\w-]*|[\w-]+|\S", rest.lstrip())
    return f"unexpected '{_short(word[0])}'" if word else "unexpected end of the query"


def _alternatives(expected: str) -> str:
    found = [each for each in _ALTERNATIVE.findall(expected) if each not in ("<EOF>", "';'")]
    if not found or len(found) > _MOST_ALTERNATIVES or "<EOF>" in expected:
        return ""
    words = (each.lower().replace("literal", " literal") if each.isupper() else each for each in found)
    return f"; expected {' or '.join(words)}"


def _unsupported(error: KqlUnsupportedError, text: str) -> QueryError:
    arguments = _ARGUMENTS.search(error.hint or "")
    if arguments:
        counts = " or ".join(re.findall(r"\d+", arguments["counts"]))
        return semantic_error(
            f"{arguments['name']}(): function expects {counts} argument(s).",
            inner="SEM0219",
            position=_position(error.span),
            subject=f"{arguments['name']}()",
        )
    if error.construct == "multi-statement":
        return unsupported("a second query statement", position=second_statement(text))
    if "(SEM0100)" in (error.hint or ""):
        return unresolved(error.construct.rpartition(":")[2])
    name, subject = _named(error.construct, _line_from(text, error.span))
    return unsupported(name[:_DETAIL], _reason(error.hint), _position(error.span), subject)


def _named(construct: str, rest: str) -> tuple[str, str]:
    """Return how a construct is called, and the name that its place can be found by."""
    kind, _, name = construct.partition(":")
    if kind in ("function", "aggregate", "let function") and name:
        return f"{name}()", f"{name}()"
    if kind == "let" and name:
        return f"let {name}", name
    if kind == "literal":
        return f"this {name} literal", ""
    if kind.endswith("Operator") and rest:
        word = _WORD.match(rest)
        return (word[0] if word else kind), ""
    if kind in ("expression", "source", "operator", "unary"):
        return _CAMEL.sub(" ", name).lower(), ""
    return (f"{kind} {name}".strip() if name else kind), f"{kind}()"


def _reason(hint: str | None) -> str:
    """Return a hint in full, without what is about the library alone."""
    if hint is None or _INTERNAL.search(hint):
        return ""
    return hint[:_DETAIL].replace("DuckDB", "the engine")


def _line_from(text: str, span: SourceSpan | None) -> str:
    lines = text.split("\n")
    return lines[span.line - 1][span.column :] if span is not None and span.line <= len(lines) else ""


def _position(span: SourceSpan | None) -> tuple[int, int] | None:
    return None if span is None else (span.line, span.column + 1)


def _short(found: str) -> str:
    return found if len(found) <= 40 else f"{found[:40]}..."  # noqa: PLR2004  as much as shows which one it is
