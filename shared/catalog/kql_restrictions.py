"""Rules that restrict a KQL query to the database of the workspace.

Stored queries and ad-hoc queries follow the same rules on every engine. The adapter of Azure Data Explorer also sends
request properties that forbid the same features. The lists of names follow the published grammar
(https://github.com/microsoft/Kusto-Query-Language/tree/master/grammar) and the reference
(https://learn.microsoft.com/kusto/query/).
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from shared.catalog.kql_text import check_query_is_read_only
from shared.catalog.kql_tokens import TYPED_LITERAL, mask_literals
from shared.errors import WorkspaceError, build_invalid_field_error

PLUGINS: Final = frozenset(
    {
        "active_users_count",
        "activity_counts_metrics",
        "activity_engagement",
        "activity_metrics",
        "autocluster",
        "bag_unpack",
        "basket",
        "dcount_intersect",
        "diffpatterns",
        "diffpatterns_text",
        "funnel_sequence",
        "funnel_sequence_completion",
        "ipv4_lookup",
        "ipv6_lookup",
        "narrow",
        "new_activity_metrics",
        "pivot",
        "preview",
        "rolling_percentile",
        "rows_near",
        "sequence_detect",
        "session_count",
        "sliding_window_counts",
    }
)
"""Plugins of ``evaluate`` that use only the query's rows: they call no other service and run no user code."""

SET_OPTIONS: Final = frozenset(
    {"materialized_view_shuffle_query", "query_bin_auto_at", "query_bin_auto_size", "query_datascope"}
)
"""Request properties that a query may set, because they lift no limit and no restriction.

A ``set`` of properties such as ``request_callout_disabled`` would override the properties that the service sends: see
https://learn.microsoft.com/kusto/api/rest/request-properties.
"""

_CALLS: Final = frozenset(
    {
        "adx",
        "app",
        "arg",
        "cluster",
        "database",
        "entity_group",
        "external_data",
        "external_table",
        "externaldata",
        "resource",
        "workspace",
    }
)
"""Functions that read data outside the database; only calls are rejected, because columns can have these names."""

_KEYWORDS: Final = frozenset(
    {
        "__contextual_datatable",
        "__crosscluster",
        "__crossdb",
        "__executeandcache",
        "entity_group",
        "external_data",
        "external_table",
        "externaldata",
    }
)
"""Words that are rejected, except as the name of a property of a dynamic value (``Payload.externaldata``)."""

_RAW_TABLE: Final = "telemetryraw"
"""Table from which the view ``Telemetry`` is made, in lower case; it contains repeated and unassigned messages."""

_RAW_TABLE_RULE: Final = "the table TelemetryRaw cannot be read; read Telemetry"
_ESCAPED_CHARACTER: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5})|([0-7]{1,3}))")
_MAX_NAME_CHARACTERS: Final = 100
_MASKED_STRING: Final = re.compile(r"'[^\w!-~]*+'")
# The prefix `h` of a string is not masked. The engine treats many non-ASCII characters as white space.
_GAP_BETWEEN_STRINGS: Final = re.compile(r"[^\w!-~]*+[hH]?")
_JOINED_STRINGS: Final = re.compile(r"'[^\w!-~]*+'[^\w!-~]*+[hH]?'")
_OUTSIDE: Final = "reads data outside this workspace, which is not allowed"
_SQL: Final = "SQL is not supported; send a KQL query"
# The engine also ends a comment at each of these characters, so code after such a character could bypass the checks.
_LINE_END: Final = re.compile("\r(?!\n)|[\u2028\u2029]")
# Matches lower-case ASCII text. The engine treats many non-ASCII characters as white space; each becomes `?`, which
# matches no token.
_TOKEN: Final = re.compile(r"[0-9a-z_]++|'\x20*+'|[!->@\[-^`{-~]")
_QUOTED_CALL: Final = re.compile(r"\][^\w!-~]*+\(")
_QUOTED_NAME: Final = re.compile(r"\s*+[hH]?@?(?:'([^'\"\\]*+)'|\"([^'\"\\]*+)\")\s*+")
_LITERAL_NAMES: Final = (
    "bool",
    "int",
    "long",
    "real",
    "double",
    "decimal",
    "date",
    "time",
    "uid",
    "uniqueid",
    "typeof",
)
"""Substrings of which each typed literal, such as ``datetime(...)``, contains at least one in lower case."""

_MAX_PARAMETERS: Final = 8
"""Limit of parameters of one ``evaluate``; the reference documents three."""


def check_query_restrictions(kql: str) -> None:
    """Reject a query that is not read-only or that reads data outside the workspace's database.

    Args:
        kql: text of a stored or an ad-hoc query.

    Raises:
        WorkspaceError: INVALID ``INVALID_REQUEST`` if the text is too long; else INVALID ``QUERY_INVALID`` or
            ``QUERY_NOT_READ_ONLY``, with ``line`` and ``column`` if the violation has one position.
    """
    check_query_is_read_only(kql)
    if separator := _LINE_END.search(kql):
        raise _build_restriction_error(
            kql, separator.start(), "lines must end with LF or CRLF; other line separators are not allowed"
        )
    masked_kql = mask_literals(kql)
    _reject_ambiguous_typed_literals(kql, masked_kql)
    _reject_forbidden_calls_by_quoted_name(kql, masked_kql)
    _reject_raw_table_name_in_strings(kql, masked_kql)
    _reject_forbidden_tokens(kql, masked_kql.encode("ascii", "replace").lower().decode("ascii"))


def _reject_forbidden_tokens(kql: str, masked_kql: str) -> None:
    tokens = _TOKEN.findall(masked_kql)
    if tokens[:2] == ["-", "-"]:
        raise _build_restriction_error(kql, _find_token_offset(masked_kql, 0), _SQL)
    # Most tokens are only compared with two sets, so that a text of maximum length takes a few milliseconds.
    pairs = zip([";", *tokens], tokens, strict=False)
    suspects = [
        index
        for index, (before, token) in enumerate(pairs)
        if token in _CHECKS or (before in _BEFORE_STATEMENT and token in _STATEMENTS)
    ]
    for index in suspects:
        if _get_token(tokens, index - 1, ";") in _BEFORE_STATEMENT and (rule := _find_statement_error(tokens, index)):
            code = "QUERY_NOT_READ_ONLY" if tokens[index] == "." else "QUERY_INVALID"
            raise _build_restriction_error(kql, _find_token_offset(masked_kql, index), rule, code)
        check = _CHECKS.get(tokens[index])
        if check and (rule := check(tokens, index)):
            raise _build_restriction_error(kql, _find_token_offset(masked_kql, index), rule)


def _find_statement_error(tokens: Sequence[str], index: int) -> str | None:
    """Return why the KQL statement that starts at a token is rejected; None if the statement is allowed."""
    second, rule = _get_token(tokens, index + 1), None
    match tokens[index]:
        case "." if _get_token(tokens, index - 1) != "{":
            rule = "control commands are not supported; send a query"
        case "alias" if second == "database":
            rule = f"alias database {_OUTSIDE}"
        case "restrict" if second == "access":
            rule = "the statement `restrict access` is not allowed"
        case "declare" if second != "query_parameters":
            rule = "declare is allowed only with query_parameters"
        case "set" if second not in SET_OPTIONS:
            rule = f"set is allowed only with these properties: {', '.join(sorted(SET_OPTIONS))}"
        case "explain":
            rule = _SQL
    return rule


def _find_evaluate_error(tokens: Sequence[str], index: int) -> str | None:
    """Return why an ``evaluate`` is rejected; None if the word is a property name, or if its plugin is allowed.

    Hints, such as ``hint.distribution = per_node``, may precede the name of the plugin.
    """
    if _get_token(tokens, index - 1) == ".":
        return None
    at = index + 1
    for _ in range(_MAX_PARAMETERS):
        after = _find_index_after_dotted_name(tokens, at)
        if _get_token(tokens, after) != "=":
            break
        at = _find_index_after_dotted_name(tokens, after + 1)
    if _get_token(tokens, at) in PLUGINS and _get_token(tokens, at + 1) == "(":
        return None
    return f"evaluate is allowed only with these plugins: {', '.join(sorted(PLUGINS))}"


def _find_index_after_dotted_name(tokens: Sequence[str], index: int) -> int:
    """Return the index of the token after a name; a name has one or two parts, such as ``hint.distribution``."""
    return index + 3 if _get_token(tokens, index + 1) == "." else index + 1


def _find_forbidden_call_error(tokens: Sequence[str], index: int) -> str | None:
    return f"{tokens[index]}() {_OUTSIDE}" if _get_token(tokens, index + 1) == "(" else None


def _find_forbidden_keyword_error(tokens: Sequence[str], index: int) -> str | None:
    is_member = _get_token(tokens, index - 1) == "." and _get_token(tokens, index + 1) != "("
    return None if is_member else f"{tokens[index]} {_OUTSIDE}"


def _find_raw_table_error(tokens: Sequence[str], index: int) -> str | None:
    """Return why the table ``TelemetryRaw`` is rejected; None if the name is a property after a dot."""
    return None if _get_token(tokens, index - 1) == "." else _RAW_TABLE_RULE


def _find_table_function_error(tokens: Sequence[str], index: int) -> str | None:
    """Return why a call of ``table()`` is rejected; None if it is no call, or if the table's name is a plain string.

    With a computed name, the call could read any table.
    """
    if _get_token(tokens, index + 1) != "(":
        return None
    is_literal = _get_token(tokens, index + 2).startswith("'") and _get_token(tokens, index + 3) in {")", ","}
    return None if is_literal else "table() must have the name of the table as a string, such as table('Telemetry')"


def _find_macro_expand_error(tokens: Sequence[str], index: int) -> str | None:
    expands = (_get_token(tokens, index + 1), _get_token(tokens, index + 2)) == ("-", "expand")
    return f"macro-expand {_OUTSIDE}" if expands else None


def _build_forbidden_character_error_text(tokens: Sequence[str], index: int) -> str:
    return f"{tokens[index]} is not allowed outside strings and comments"


def _build_unclosed_string_error_text(_tokens: Sequence[str], _index: int) -> str:
    return "a string is not closed"


type _Check = Callable[[Sequence[str], int], str | None]

_BEFORE_STATEMENT: Final = frozenset(";{")
_STATEMENTS: Final = frozenset({".", "alias", "declare", "explain", "restrict", "set"})
_CHECKS: Final[Mapping[str, _Check]] = {
    **dict.fromkeys(_CALLS, _find_forbidden_call_error),
    **dict.fromkeys(_KEYWORDS, _find_forbidden_keyword_error),
    "evaluate": _find_evaluate_error,
    "macro": _find_macro_expand_error,
    "table": _find_table_function_error,
    _RAW_TABLE: _find_raw_table_error,
    "#": _build_forbidden_character_error_text,
    "@": _build_forbidden_character_error_text,
    "'": _build_unclosed_string_error_text,
    '"': _build_unclosed_string_error_text,
    "`": _build_unclosed_string_error_text,
}


def _reject_ambiguous_typed_literals(kql: str, masked_kql: str) -> None:
    """Reject a typed literal, such as ``datetime(...)``, if a string or comment in the literal contains ``)``.

    The engine possibly reads this ``)`` as the end of the literal. ``masked_kql`` is the query with masked strings.
    """
    lowered = masked_kql.lower()
    # The search for literals is slow. Outside ASCII, it also matches letters that `lower` does not change.
    if masked_kql.isascii() and not any(name in lowered for name in _LITERAL_NAMES):
        return
    written = seen = -1
    for literal in TYPED_LITERAL.finditer(masked_kql):
        start = literal.end()
        written = written if written >= start else kql.find(")", start)
        seen = seen if seen >= start else masked_kql.find(")", start)
        if written != seen:
            rule = 'a typed literal such as datetime(...) must not have ")" in a string or comment'
            raise _build_restriction_error(kql, literal.start(), rule)
        if written < 0:
            return


def _reject_forbidden_calls_by_quoted_name(kql: str, masked_kql: str) -> None:
    """Reject a call of a forbidden function by a quoted name, such as ``['cluster'](...)``.

    Also reject a call in which the brackets contain something other than one quoted name.
    """
    checked = 0
    for call in _QUOTED_CALL.finditer(masked_kql):
        start = masked_kql.rfind("[", checked, call.start())
        checked = call.end()
        name = _QUOTED_NAME.fullmatch(kql, start + 1, call.start()) if start >= 0 else None
        if name is None:
            raise _build_restriction_error(
                kql, call.start(), "a function must be called by its plain name, without brackets and quotes"
            )
        plain = (name[1] or name[2] or "").strip().casefold()
        if plain in _CALLS or plain == "table":
            rule = f"{plain}() {_OUTSIDE}" if plain in _CALLS else "table() must be called without brackets and quotes"
            raise _build_restriction_error(kql, start, rule)


def _reject_raw_table_name_in_strings(kql: str, masked_kql: str) -> None:
    """Reject a string with the content ``TelemetryRaw``, because ``table()`` or a quoted name could read this table.

    Strings that follow each other count as one string, because the engine joins them. ``masked_kql`` is the query with
    masked strings.
    """
    if "\\" not in kql and _JOINED_STRINGS.search(masked_kql) is None and _RAW_TABLE not in kql.lower():
        return
    joined, end = "", 0
    for string in _MASKED_STRING.finditer(masked_kql):
        is_joined = _GAP_BETWEEN_STRINGS.fullmatch(masked_kql, end, string.start()) is not None
        # A longer text is not the name; the limit keeps the effort linear.
        joined = (joined[:_MAX_NAME_CHARACTERS] if is_joined else "") + _decode_kql_string_literal(
            kql[string.start() : string.end()]
        )
        end = string.end()
        if len(joined) <= _MAX_NAME_CHARACTERS and joined.strip().casefold() == _RAW_TABLE:
            raise _build_restriction_error(kql, string.start(), _RAW_TABLE_RULE)


def _decode_kql_string_literal(literal: str) -> str:
    r"""Return the characters of a KQL string without its quotes.

    Escapes with a character's code, such as ``\x41`` for ``A``, are decoded. Other escapes, such as ``\n``, remain,
    because the result is compared only with table names, which do not contain these characters.
    """
    if literal[0] == "@":
        return literal[2:-1]
    if literal[:3] in {"```", "~~~"}:
        return literal[3:-3]
    return _ESCAPED_CHARACTER.sub(_decode_escaped_character, literal[1:-1]) if "\\" in literal else literal[1:-1]


def _decode_escaped_character(found: re.Match[str]) -> str:
    code = int(found[4], 8) if found[4] else int(found[1] or found[2] or found[3], 16)
    return chr(code) if code <= sys.maxunicode else ""


def _get_token(tokens: Sequence[str], index: int, default: str = "") -> str:
    return tokens[index] if 0 <= index < len(tokens) else default


def _find_token_offset(masked_kql: str, index: int) -> int:
    for place, token in enumerate(_TOKEN.finditer(masked_kql)):
        if place == index:
            return token.start()
    return 0


def _build_restriction_error(kql: str, offset: int, rule: str, code: str = "QUERY_INVALID") -> WorkspaceError:
    before = kql[:offset]
    error = build_invalid_field_error("query", rule, code=code)
    error.members.update(line=before.count("\n") + 1, column=offset - before.rfind("\n"))
    return error
