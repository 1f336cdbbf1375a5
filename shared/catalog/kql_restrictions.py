"""Rules that keep a query inside the workspace's own database.

A stored query and an ad-hoc query obey the same rules, on every engine. The request properties that the adapter of
Azure Data Explorer sends forbid the same things a second time. The lists follow the published grammar
(https://github.com/microsoft/Kusto-Query-Language/tree/master/grammar) and the reference
(https://learn.microsoft.com/kusto/query/).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from shared.catalog.kql_text import check_read_only
from shared.catalog.kql_tokens import mask_literals
from shared.errors import WorkspaceError, invalid

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
"""Plugins of ``evaluate`` that compute on the query's own rows: no call to another service, no code of the caller."""

SET_OPTIONS: Final = frozenset(
    {"materialized_view_shuffle_query", "query_bin_auto_at", "query_bin_auto_size", "query_datascope"}
)
"""Request properties that a query may set: none of them lifts a limit or a restriction.

A ``set`` of ``request_callout_disabled`` and its like would lift what the service sends with the request: see
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
"""Functions that name data outside the database; the names alone are allowed, because columns may have them."""

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
"""Words that are refused wherever they are not a member of a dynamic value."""

_OUTSIDE: Final = "reaches outside this workspace, which no query may do"
_SQL: Final = "SQL is not run here; a KQL query is expected"
# The engine ends a comment at each of these as well, so a text could hide code from the checks behind one of them.
_LINE_END: Final = re.compile("\r(?!\n)|[\u2028\u2029]")
# Of the text in lower-case ASCII. The engine takes many characters outside ASCII for white space; each is a `?` here,
# which is no token and so separates nothing.
_TOKEN: Final = re.compile(r"[0-9a-z_]++|'\x20*+'|[!->@\[-^`{-~]")
_QUOTED_CALL: Final = re.compile(r"\][^\w!-~]*+\(")
_QUOTED_NAME: Final = re.compile(r"\s*+[hH]?@?(?:'([^'\"\\]*+)'|\"([^'\"\\]*+)\")\s*+")
# The engine reads what is between these brackets as one literal up to the first `)`, quotation marks included.
_LITERAL: Final = re.compile(
    r"\b(?:bool|boolean|int|int32|int64|long|real|double|decimal|date|datetime|time|timespan|guid|uuid|uniqueid|typeof)"
    r"[^\w!-~]*+\(",
    re.IGNORECASE,
)
_MOST_PARAMETERS: Final = 8
"""Parameters of one ``evaluate``; the documentation knows three."""


def check_query(kql: str) -> None:
    """Refuse a query that is not read-only or that reaches outside the workspace's own database.

    Args:
        kql: the text of a stored or an ad-hoc query.

    Raises:
        WorkspaceError: INVALID, ``QUERY_INVALID`` or ``QUERY_NOT_READ_ONLY``, with ``line`` and ``column`` where the
            text has one place that breaks the rule.
    """
    check_read_only(kql)
    if odd := _LINE_END.search(kql):
        raise _refused(kql, odd.start(), "has a line separator other than LF or CRLF")
    text = mask_literals(kql)
    _check_literals(kql, text)
    _check_quoted_calls(kql, text)
    _check_tokens(kql, text.encode("ascii", "replace").lower().decode("ascii"))


def _check_tokens(kql: str, text: str) -> None:
    tokens = _TOKEN.findall(text)
    if tokens[:2] == ["-", "-"]:
        raise _refused(kql, _position(text, 0), _SQL)
    # Most tokens are only compared with two sets, so that a text of the greatest length takes some milliseconds.
    pairs = zip([";", *tokens], tokens, strict=False)
    suspects = [
        index
        for index, (before, token) in enumerate(pairs)
        if token in _CHECKS or (before in _BEFORE_STATEMENT and token in _STATEMENTS)
    ]
    for index in suspects:
        if _at(tokens, index - 1, ";") in _BEFORE_STATEMENT and (rule := _statement_rule(tokens, index)):
            code = "QUERY_NOT_READ_ONLY" if tokens[index] == "." else "QUERY_INVALID"
            raise _refused(kql, _position(text, index), rule, code)
        check = _CHECKS.get(tokens[index])
        if check and (rule := check(tokens, index)):
            raise _refused(kql, _position(text, index), rule)


def _statement_rule(tokens: Sequence[str], index: int) -> str | None:
    """Return why the statement that begins here is refused."""
    second, rule = _at(tokens, index + 1), None
    match tokens[index]:
        case "." if _at(tokens, index - 1) != "{":
            rule = "control commands are not run here; a query is expected"
        case "alias" if second == "database":
            rule = f"alias database {_OUTSIDE}"
        case "restrict" if second == "access":
            rule = "restrict access is a statement that queries may not use"
        case "declare" if second != "query_parameters":
            rule = "declare is allowed with query_parameters only"
        case "set" if second not in SET_OPTIONS:
            rule = f"set is allowed with these properties only: {', '.join(sorted(SET_OPTIONS))}"
        case "explain":
            rule = _SQL
    return rule


def _evaluate_rule(tokens: Sequence[str], index: int) -> str | None:
    """Return why an ``evaluate`` is refused: after its parameters, an allowed plugin is expected."""
    if _at(tokens, index - 1) == ".":
        return None
    at = index + 1
    for _ in range(_MOST_PARAMETERS):
        after = _after_name(tokens, at)
        if _at(tokens, after) != "=":
            break
        at = _after_name(tokens, after + 1)
    if _at(tokens, at) in PLUGINS and _at(tokens, at + 1) == "(":
        return None
    return f"evaluate is allowed with these plugins only: {', '.join(sorted(PLUGINS))}"


def _after_name(tokens: Sequence[str], at: int) -> int:
    """Return the index after a name of one or two parts, such as ``hint.distribution``."""
    return at + 3 if _at(tokens, at + 1) == "." else at + 1


def _call_rule(tokens: Sequence[str], index: int) -> str | None:
    return f"{tokens[index]}() {_OUTSIDE}" if _at(tokens, index + 1) == "(" else None


def _keyword_rule(tokens: Sequence[str], index: int) -> str | None:
    is_member = _at(tokens, index - 1) == "." and _at(tokens, index + 1) != "("
    return None if is_member else f"{tokens[index]} {_OUTSIDE}"


def _macro_rule(tokens: Sequence[str], index: int) -> str | None:
    expands = (_at(tokens, index + 1), _at(tokens, index + 2)) == ("-", "expand")
    return f"macro-expand {_OUTSIDE}" if expands else None


def _sign_rule(tokens: Sequence[str], index: int) -> str | None:
    return f"{tokens[index]} has no meaning in a query"


def _quote_rule(_tokens: Sequence[str], _index: int) -> str | None:
    return "a string has no end"


type _Check = Callable[[Sequence[str], int], str | None]

_BEFORE_STATEMENT: Final = frozenset(";{")
_STATEMENTS: Final = frozenset({".", "alias", "declare", "explain", "restrict", "set"})
_CHECKS: Final[Mapping[str, _Check]] = {
    **dict.fromkeys(_CALLS, _call_rule),
    **dict.fromkeys(_KEYWORDS, _keyword_rule),
    "evaluate": _evaluate_rule,
    "macro": _macro_rule,
    "#": _sign_rule,
    "@": _sign_rule,
    "'": _quote_rule,
    '"': _quote_rule,
    "`": _quote_rule,
}


def _check_literals(kql: str, text: str) -> None:
    """Refuse a typed literal whose end the engine and the checks could see in different places."""
    written = seen = -1
    for literal in _LITERAL.finditer(text):
        start = literal.end()
        written = written if written >= start else kql.find(")", start)
        seen = seen if seen >= start else text.find(")", start)
        if written != seen:
            raise _refused(kql, literal.start(), "a typed literal has a closing bracket in a string or comment")
        if written < 0:
            return


def _check_quoted_calls(kql: str, text: str) -> None:
    """Refuse a call by a quoted name, ``['cluster'](...)``, of a function that is refused by its plain name."""
    checked = 0
    for call in _QUOTED_CALL.finditer(text):
        start = text.rfind("[", checked, call.start())
        checked = call.end()
        name = _QUOTED_NAME.fullmatch(kql, start + 1, call.start()) if start >= 0 else None
        if name is None:
            raise _refused(kql, call.start(), "a call needs a plain name")
        plain = (name[1] or name[2] or "").strip().casefold()
        if plain in _CALLS:
            raise _refused(kql, start, f"{plain}() {_OUTSIDE}")


def _at(tokens: Sequence[str], index: int, otherwise: str = "") -> str:
    return tokens[index] if 0 <= index < len(tokens) else otherwise


def _position(text: str, index: int) -> int:
    for place, token in enumerate(_TOKEN.finditer(text)):
        if place == index:
            return token.start()
    return 0


def _refused(kql: str, offset: int, rule: str, code: str = "QUERY_INVALID") -> WorkspaceError:
    before = kql[:offset]
    error = invalid("query", rule, code=code)
    error.members.update(line=before.count("\n") + 1, column=offset - before.rfind("\n"))
    return error
