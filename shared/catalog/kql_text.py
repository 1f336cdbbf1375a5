"""What must be known of a KQL text before it is sent: where its statements stand, strings and comments aside.

This is no parser; the engine is. It finds the place for our own statements, and refuses what would slip past them.
"""

import re
from dataclasses import dataclass

from shared.catalog.kql_tokens import mask_literals
from shared.errors import WorkspaceError, invalid

MAX_LENGTH = 65_536
_COMMAND = re.compile(r"(?:^|;)\s*+\.")
_DECLARE = re.compile(r"declare\s++query_parameters\s*+\(")
_END = re.compile(r"\s*+;")
_OUTSIDE = (
    (re.compile(r"\b(?:database|cluster)\s*+\("), "database() and cluster()"),
    (re.compile(r"\bexternal(?:data|_table)\s*+[\[(]"), "externaldata and external_table()"),
)
_OWN_TABLE = re.compile(r"\blet\s++(?:Telemetry\b|\[)")
_UNION_PART = re.compile(r"\bunion\b|[*|;)]")
_ESCAPES_TIME_RANGE = (
    (re.compile(r"(?:^|[|;(=])\s*+(?:search|find)\b"), "search and find"),
    (re.compile(r"\bmaterialized_view\s*+\("), "materialized_view()"),
    (re.compile(r"\b(?:table|stored_query_result)\s*+\("), "a table named by a function"),
    *_OUTSIDE,
    (_OWN_TABLE, "an own `let Telemetry`"),
)


@dataclass(frozen=True, slots=True)
class ComposedQuery:
    """A query with our statements put in.

    Attributes:
        text: what the engine gets.
        lines_before: lines that stand before the caller's own text; to be taken off the engine's positions.
    """

    text: str
    lines_before: int


def check_read_only(kql: str) -> None:
    """Refuse what is no query: control commands, alone or as a later statement.

    Raises:
        WorkspaceError: INVALID, ``QUERY_INVALID`` or ``QUERY_NOT_READ_ONLY``.
    """
    if len(kql) > MAX_LENGTH:
        raise invalid("query", f"is longer than {MAX_LENGTH} characters")
    text = mask_literals(kql)
    if not text.strip("; \t\r\n\f\v"):
        raise invalid("query", "is empty", code="QUERY_INVALID")
    if command := _COMMAND.search(text):
        rule = "control commands are not run here; a query is expected"
        raise _located(invalid("query", rule, code="QUERY_NOT_READ_ONLY"), text, command.end() - 1)


def check_time_range(kql: str) -> None:
    """Refuse what would reach telemetry past the filter that a timeRange puts before it.

    Raises:
        WorkspaceError: INVALID naming ``timeRange``.
    """
    text = mask_literals(kql)
    for pattern, what in _ESCAPES_TIME_RANGE:
        if pattern.search(text):
            raise _not_applicable(what)
    if _has_wildcard_union(text):
        raise _not_applicable("a union with a wildcard")


def accepts_time_filter(kql: str) -> bool:
    """Return whether a statement of ours may stand in for the table; a query with its own one keeps that."""
    return _OWN_TABLE.search(mask_literals(kql)) is None


def compose_query(kql: str, declarations: str, statements: str) -> ComposedQuery:
    """Put parameter declarations and statements before a query.

    Args:
        kql: the caller's text; a ``declare query_parameters`` of its own keeps its place and takes ours in.
        declarations: ``name:type, ...``, empty for none.
        statements: whole statements, each ended with ``;``, on one line; empty for none.
    """
    text = mask_literals(kql)
    own = _DECLARE.search(text)
    if own is None:
        declare = f"declare query_parameters({declarations});" if declarations else ""
        before = declare + statements
        return ComposedQuery(f"{before}\n{kql}", 1) if before else ComposedQuery(kql, 0)
    end = _end_of_statement(text, own.end())
    taken = f"{declarations}, " if declarations and text[own.end() : end].strip(" )\n\r\t;") else declarations
    return ComposedQuery(kql[: own.end()] + taken + kql[own.end() : end] + statements + kql[end:], 0)


def _not_applicable(what: str) -> WorkspaceError:
    return invalid("timeRange", f"does not apply to a query with {what}", code="TIME_RANGE_NOT_APPLICABLE")


def _has_wildcard_union(text: str) -> bool:
    # One pass over the parts: a pattern from each `union` to a later `*` would take quadratic time.
    inside = False
    for found in _UNION_PART.finditer(text):
        if found[0] == "*" and inside:
            return True
        if found[0] != "*":
            inside = found[0] == "union"
    return False


def _located(error: WorkspaceError, text: str, offset: int) -> WorkspaceError:
    before = text[:offset]
    error.members.update(line=before.count("\n") + 1, column=offset - before.rfind("\n"))
    return error


def _end_of_statement(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            semicolon = _END.match(text, position + 1)
            if semicolon is not None:
                return semicolon.end()
            break
    raise invalid("query", "the declare statement has no end", code="QUERY_INVALID")
