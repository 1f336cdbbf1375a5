"""Insertion of statements, such as time filters, into KQL queries; rejection of queries that could bypass them."""

import re
from dataclasses import dataclass

from shared.catalog.kql_tokens import TYPED_LITERAL, mask_literals
from shared.errors import WorkspaceError, build_invalid_field_error

MAX_LENGTH = 65_536
_COMMAND = re.compile(r"(?:^|;)\s*+\.")
_DECLARE = re.compile(r"declare\s++query_parameters\s*+\(")
_END = re.compile(r"\s*+;")
_OUTSIDE = (
    (re.compile(r"\b(?:database|cluster)\s*+\("), "database() or cluster()"),
    (re.compile(r"\bexternal(?:data|_table)\s*+[\[(]"), "externaldata or external_table()"),
)
_OWN_TABLE = re.compile(r"\blet(?:\s++Telemetry\b|\s*+[\[{])")
_QUOTED_CALL = re.compile(r"\]\s*+\(")
_QUOTED_NAME = re.compile(r"\s*+[hH]?@?(?:'([^'\"\\]*+)'|\"([^'\"\\]*+)\")\s*+")
_ESCAPING_FUNCTIONS = frozenset(
    {
        *("cluster", "database", "external_table", "externaldata"),
        *("graph", "materialized-view-combine", "materialized_view", "stored_query_result", "table"),
    }
)
"""Functions that read other data than the filtered table, in lower case."""
_DATA_DEPENDENT_PLUGIN = re.compile(r"\b(?:bag_unpack|pivot)\s*+\(")
_UNION_PART = re.compile(r"\bunion\b|[*|;()]")
_OPENING = re.compile(r"[^()]*+\(")
_SET_STATEMENTS = re.compile(r"(?:[\s;]++|\bset\b[^;]*+;)*+")
_ESCAPES_TIME_RANGE = (
    (re.compile(r"(?:^|[|;(={])\s*+(?:search|find)\b"), "search or find"),
    (
        re.compile(r"\b(?:materialized_view|materialized-view-combine|graph)\s*+\("),
        "materialized_view(), materialized-view-combine or graph()",
    ),
    (re.compile(r"\b(?:table|stored_query_result)\s*+\("), "table() or stored_query_result()"),
    *_OUTSIDE,
    (_OWN_TABLE, "a definition of `Telemetry` by `let`"),
)


@dataclass(frozen=True, slots=True)
class ComposedQuery:
    """Query text with the service's own statements inserted.

    Attributes:
        text: KQL text for the query engine.
        lines_before: number of inserted lines before the caller's text, to be subtracted from the line numbers of the
            engine's errors.
    """

    text: str
    lines_before: int


def check_query_is_read_only(kql: str) -> None:
    """Reject a query text that is too long, is empty, or has a control command as one of its statements.

    Raises:
        WorkspaceError: INVALID ``INVALID_REQUEST`` if the text is too long; INVALID ``QUERY_INVALID`` if it is empty;
            INVALID ``QUERY_NOT_READ_ONLY`` for a control command.
    """
    if len(kql) > MAX_LENGTH:
        raise build_invalid_field_error("query", f"must have at most {MAX_LENGTH} characters")
    text = mask_literals(kql)
    if not text.strip("; \t\r\n\f\v"):
        raise build_invalid_field_error("query", "must not be empty", code="QUERY_INVALID")
    if command := _COMMAND.search(text):
        rule = "control commands are not supported; send a query"
        raise _add_error_position(
            build_invalid_field_error("query", rule, code="QUERY_NOT_READ_ONLY"), text, command.end() - 1
        )


def reject_time_range_bypass(kql: str, field: str = "timeRange") -> None:
    """Reject a KQL query that could read telemetry outside the requested time range.

    Args:
        kql: text of the query.
        field: name of the request parameter for the time range, for the error.

    Raises:
        WorkspaceError: INVALID naming the field.
    """
    text = _mask_all_but_code(kql)
    for pattern, feature in _ESCAPES_TIME_RANGE:
        if pattern.search(text):
            raise _build_time_range_error(field, f"cannot be applied to a query with {feature}; remove it")
    if _has_time_filter_bypass_by_quoted_name(kql, text):
        rule = "cannot be applied to a query that calls a function by a quoted name; call it without quotes"
        raise _build_time_range_error(field, rule)
    if _has_statement_before_parameters(text):
        rule = "requires that `declare query_parameters` is the first statement of the query, except for `set`"
        raise _build_time_range_error(field, rule)
    if "union" in text and _has_parenthesis_in_literal(text):
        rule = "cannot be applied to a query with a union and a typed literal, such as datetime(...), that contains `(`"
        raise _build_time_range_error(field, rule)
    if _has_wildcard_union(text):
        rule = "cannot be applied to a union with a wildcard (`*`); name the tables of the union"
        raise _build_time_range_error(field, rule)


def can_restrict_telemetry_rows(kql: str) -> bool:
    """Return whether a statement inserted before the query can restrict which rows of ``Telemetry`` the query reads.

    The result is False if the query itself redefines the name ``Telemetry``.
    """
    return _OWN_TABLE.search(_mask_all_but_code(kql)) is None


def build_output_schema_hint(kql: str) -> str:
    """Return a hint to append to the error about an unknown column; empty if ``bag_unpack`` and ``pivot`` do not occur.

    These plugins make columns from values in rows. The columns of a saved query are determined without rows, so only
    the columns that an output schema declares are known.

    Args:
        kql: text of the query.
    """
    if _DATA_DEPENDENT_PLUGIN.search(_mask_all_but_code(kql)) is None:
        return ""
    return (
        "; a saved query must declare the columns of bag_unpack and pivot that it uses, as in "
        "`evaluate bag_unpack(Payload) : (*, temperature:real)`"
    )


def compose_query(kql: str, declarations_kql: str, statements_kql: str) -> ComposedQuery:
    """Insert parameter declarations and statements of the service before a caller's KQL query.

    Args:
        kql: the caller's text; if it has a ``declare query_parameters``, the declarations are added to it.
        declarations_kql: declared parameters as ``name:type, ...``; empty without parameters.
        statements_kql: complete statements on one line, each ending with ``;``; empty without statements.
    """
    text = _mask_all_but_code(kql)
    declaration = _DECLARE.search(text)
    if declaration is None:
        declare = f"declare query_parameters({declarations_kql});" if declarations_kql else ""
        before = declare + statements_kql
        return ComposedQuery(f"{before}\n{kql}", 1) if before else ComposedQuery(kql, 0)
    end = _require_offset_after_declared_parameters(text, declaration.end())
    merged = (
        f"{declarations_kql}, "
        if declarations_kql and text[declaration.end() : end].strip(" )\n\r\t;")
        else declarations_kql
    )
    return ComposedQuery(
        kql[: declaration.end()] + merged + kql[declaration.end() : end] + statements_kql + kql[end:], 0
    )


def _build_time_range_error(field: str, rule: str) -> WorkspaceError:
    return build_invalid_field_error(field, rule, code="TIME_RANGE_NOT_APPLICABLE")


def _mask_all_but_code(kql: str) -> str:
    """Return a KQL text of the same length in which spaces replace strings, comments and non-ASCII characters.

    The engine treats many non-ASCII characters as white space. Names and operators are ASCII.
    """
    return mask_literals(kql).encode("ascii", "replace").decode("ascii").replace("?", " ")


def _has_time_filter_bypass_by_quoted_name(kql: str, masked_kql: str) -> bool:
    """Return whether a query calls by a quoted name a function that reads unfiltered data, as in ``['table'](...)``.

    The time filter does not apply to these data. Brackets before a parenthesis that contain anything other than one
    quoted name count as such a call. Other quoted names are columns or tables, as in
    ``partition by ['Device Id'] (...)``.

    Args:
        kql: text of the query.
        masked_kql: the same text, in which spaces replace strings and comments.
    """
    checked = 0
    for call in _QUOTED_CALL.finditer(masked_kql):
        start = masked_kql.rfind("[", checked, call.start())
        checked = call.end()
        name = _QUOTED_NAME.fullmatch(kql, start + 1, call.start()) if start >= 0 else None
        if name is None or (name[1] or name[2] or "").strip().casefold() in _ESCAPING_FUNCTIONS:
            return True
    return False


def _has_statement_before_parameters(masked_kql: str) -> bool:
    """Return whether a statement other than ``set`` precedes the first ``declare query_parameters``.

    The time filter follows the declaration, so it does not apply to statements before the declaration.
    """
    declaration = _DECLARE.search(masked_kql)
    return declaration is not None and _SET_STATEMENTS.fullmatch(masked_kql, 0, declaration.start()) is None


def _has_parenthesis_in_literal(masked_kql: str) -> bool:
    """Return whether a typed literal, such as ``datetime(...)``, contains ``(``.

    In such a query, a count of opening and closing parentheses would be wrong.
    """
    return any(_OPENING.match(masked_kql, literal.end()) for literal in TYPED_LITERAL.finditer(masked_kql))


def _has_wildcard_union(masked_kql: str) -> bool:
    """Return whether a wildcard is an operand of a ``union``; an asterisk in a parenthesised operand is arithmetic."""
    # One pass, because a pattern from each `union` to a later `*` would take quadratic time. The list has an entry for
    # each open parenthesis: whether the operands of a union are directly in it.
    in_union = [False]
    for part in _UNION_PART.findall(masked_kql):
        match part:
            case "(":
                in_union.append(False)
            case ")":
                if len(in_union) > 1:
                    in_union.pop()
            case "*":
                if in_union[-1]:
                    return True
            case _:
                in_union[-1] = part == "union"
    return False


def _add_error_position(error: WorkspaceError, text: str, offset: int) -> WorkspaceError:
    before = text[:offset]
    error.members.update(line=before.count("\n") + 1, column=offset - before.rfind("\n"))
    return error


def _require_offset_after_declared_parameters(masked_kql: str, start_offset: int) -> int:
    depth = 1
    for position in range(start_offset, len(masked_kql)):
        depth += {"(": 1, ")": -1}.get(masked_kql[position], 0)
        if depth == 0:
            semicolon = _END.match(masked_kql, position + 1)
            if semicolon is not None:
                return semicolon.end()
            break
    raise build_invalid_field_error(
        "query", "the statement declare query_parameters must end with `);`", code="QUERY_INVALID"
    )
