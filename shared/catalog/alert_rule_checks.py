"""Checks of alert rules against their warm queries (saved KQL queries) that need no query engine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from shared.catalog.alert_rule_models import AlertRule, has_same_query_use
from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind
from shared.catalog.kql_text import reject_time_range_bypass
from shared.catalog.models import StoredWarmQuery, WarmQuery, WorkspaceDocument
from shared.catalog.parameters import bind_arguments_as_literals
from shared.catalog.ports import StoredCatalog
from shared.catalog.problems import DocumentPath, Violation
from shared.errors import WorkspaceError


@dataclass(frozen=True, slots=True)
class QueryUse:
    """New or changed use of a query by an alert rule of a workspace document.

    Attributes:
        path: path of the rule in the document.
        rule: the rule.
        query: the query after the changes; None if it does not exist then.
    """

    path: DocumentPath
    rule: AlertRule
    query: WarmQuery | None


def list_new_query_uses(
    document: WorkspaceDocument, stored: StoredCatalog, changes: Sequence[ItemChange]
) -> list[QueryUse]:
    """Return the uses of queries by alert rules that the changes add or replace, in the order of the document.

    A rule that uses its query as the stored rule does is omitted: it remains valid if its query was deleted or changed
    later.

    Args:
        document: workspace document that requires the changes.
        stored: catalog before the changes.
        changes: changes of catalog items.
    """
    before = {item.key: item.definition for item in stored.items if item.kind == ItemKind.WARM_QUERY}
    changed = {change.key: change.after for change in changes if change.kind == ItemKind.WARM_QUERY}
    queries = {key: query for key, query in {**before, **changed}.items() if query is not None}
    new = {
        change.key
        for change in changes
        if change.kind == ItemKind.ALERT_RULE
        and change.after is not None
        and not has_same_query_use(change.before, change.after)
    }
    return [
        QueryUse(("alertRules", index), rule, _find_query(queries, rule.query))
        for index, rule in enumerate(document.alert_rules)
        if rule.query is not None and rule.lookup in new
    ]


def _find_query(definitions: Mapping[str, Mapping[str, Any]], lookup: str) -> WarmQuery | None:
    return try_parse_stored_query(definitions[lookup]) if lookup in definitions else None


def try_parse_stored_query(definition: Mapping[str, Any]) -> StoredWarmQuery | None:
    """Parse the stored definition of a query; None if this version cannot parse it, so that reads do not find it."""
    try:
        return StoredWarmQuery.model_validate(definition)
    except ValidationError:
        return None


def iterate_query_use_errors(
    uses: Iterable[QueryUse], *, must_exist: bool = True, is_query_readable: bool = True
) -> Iterator[Violation]:
    """Yield errors of alert rules: unknown queries, wrong query parameters, and time ranges that a query cannot have.

    These checks need no query engine. The paths of the errors are paths in the workspace document.

    Args:
        uses: new and changed uses of queries by alert rules.
        must_exist: whether the query of a rule must exist.
        is_query_readable: as in :func:`iterate_parameter_and_time_range_errors`.
    """
    for use in uses:
        if use.query is not None:
            errors = iterate_parameter_and_time_range_errors(use.rule, use.query, is_query_readable=is_query_readable)
            yield from (((*use.path, *path), message) for path, message in errors)
        elif must_exist:
            yield (*use.path, "query"), f"unknown warm query: {use.rule.query}"


def iterate_parameter_and_time_range_errors(
    rule: AlertRule, query: WarmQuery, *, is_query_readable: bool
) -> Iterator[Violation]:
    """Yield the errors in the parameters and the time range of an alert rule, with paths relative to the rule.

    Args:
        rule: alert rule.
        query: query of the rule.
        is_query_readable: whether the caller may read the query; if not, the errors contain nothing of its text, and
            only the parameter names that the rule has.
    """
    # Hidden parameters of the query give equal errors.
    yield from dict.fromkeys(_iterate_parameter_errors(rule, query, is_query_readable=is_query_readable))
    try:
        if rule.time_range is not None:
            reject_time_range_bypass(query.kql)
    except WorkspaceError as error:
        for field, message in _iterate_field_names_and_messages(error):
            yield (field,), message if is_query_readable else "cannot be applied to this query"


def _iterate_parameter_errors(rule: AlertRule, query: WarmQuery, *, is_query_readable: bool) -> Iterator[Violation]:
    hidden = set() if is_query_readable else {each.name for each in query.parameters} - rule.parameters.keys()
    try:
        bind_arguments_as_literals(
            query.parameters, rule.parameters, "parameters.{}".format, suggests_names=is_query_readable
        )
    except WorkspaceError as error:
        for field, message in _iterate_field_names_and_messages(error):
            name = field.removeprefix("parameters.")
            if name in hidden:
                yield ("parameters",), "a required parameter of the query is missing"
            else:
                # The entry about errors that are not listed names no parameter.
                yield ("parameters",) if name == field else ("parameters", name), message


def _iterate_field_names_and_messages(error: WorkspaceError) -> Iterator[tuple[str, str]]:
    listed = error.members.get("errors")
    for member in listed if isinstance(listed, list) else ():
        yield member["field"], member["message"]
