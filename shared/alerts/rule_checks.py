"""Checks of an alert rule against its warm query (saved KQL query): parameters, time range and columns.

This module is separate from the HTTP operation, because domains do not depend on HTTP.
"""

from collections.abc import Iterator

from shared.catalog.kql_text import check_time_range
from shared.catalog.models import AlertRule, WarmQuery
from shared.errors import FieldError, Kind, WorkspaceError
from shared.validation.names import find_nearest_name
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.ports import Column
from shared.warm_queries.service import bind_parameters


async def find_query_errors(rule: AlertRule, query: WarmQuery, columns: QueryColumns) -> list[FieldError]:
    """Check a threshold rule against its query: parameters, time range and columns; return the errors.

    If the query engine does not return the columns, other errors are still returned.

    Args:
        rule: a rule whose own fields are valid.
        query: saved KQL query of the rule, approved or not.
        columns: gets the result columns of queries from the engine.

    Raises:
        WorkspaceError: if the query engine does not return the columns, and the rule has no other error.
    """
    errors = [*_find_parameter_errors(rule, query), *_find_time_range_errors(rule, query)]
    result = await columns.resolve_or_error(query)
    if not isinstance(result, WorkspaceError):
        return [*errors, *_find_column_errors(rule, result)]
    if result.kind is not Kind.INVALID:
        if errors:
            return errors
        raise result
    return [*errors, FieldError("query", f"the query engine rejects this query: {result.detail}")]


def _find_parameter_errors(rule: AlertRule, query: WarmQuery) -> Iterator[FieldError]:
    try:
        bind_parameters(query.parameters, rule.parameters, "parameters.{}".format)
    except WorkspaceError as error:
        yield from _list_errors(error)


def _find_time_range_errors(rule: AlertRule, query: WarmQuery) -> Iterator[FieldError]:
    try:
        if rule.time_range is not None:
            check_time_range(query.kql)
    except WorkspaceError as error:
        yield from _list_errors(error)


def _list_errors(error: WorkspaceError) -> Iterator[FieldError]:
    listed = error.members.get("errors")
    for member in listed if isinstance(listed, list) else ():
        yield FieldError(member["field"], member["message"])


def _find_column_errors(rule: AlertRule, columns: tuple[Column, ...]) -> Iterator[FieldError]:
    names = [column.name for column in columns]
    used = [(f"groupBy[{index}]", name) for index, name in enumerate(rule.group_by)]
    if rule.condition is not None and rule.condition.column is not None:
        used.insert(0, ("condition.column", rule.condition.column))
    for field, name in used:
        if name not in names:
            nearest = find_nearest_name(name, names)
            hint = f"; did you mean `{nearest}`?" if nearest else f"; its columns are {', '.join(names)}"
            yield FieldError(field, f"is not a column of the query{hint}")
