"""Rules of warm queries (saved KQL queries): names, API paths, text and declared parameters."""

from collections.abc import Iterator, Sequence

from shared.catalog.kql_restrictions import check_query_restrictions
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.parameters import to_kql_literal
from shared.catalog.problems import DocumentPath, Violation
from shared.catalog.sections import Indexed
from shared.errors import WorkspaceError


def find_api_path_error(api_path: str) -> str | None:
    """Return the rule that an API path violates; None if it is valid.

    Empty segments, ``.`` and ``..`` are invalid, because clients and proxies remove them. A path must not end with
    ``/approve``, because this is the route for approvals.
    """
    if set(api_path.split("/")) & {"", ".", ".."}:
        return "must not have an empty, . or .. segment"
    return "must not end in /approve" if api_path.endswith("/approve") else None


def check_api_paths(indexed_queries: Indexed[WarmQuery]) -> Iterator[Violation]:
    """Yield an error for each API path that is invalid, or is the lookup (id in URLs) or API path of another query.

    Args:
        indexed_queries: queries, each with its index in the workspace document.
    """
    lookups = {query.lookup: index for index, query in reversed(indexed_queries)}
    owners: dict[str, int] = {}
    for index, query in indexed_queries:
        if query.api_path is None:
            continue
        at = ("warmQueries", index, "apiPath")
        if rule := find_api_path_error(query.api_path):
            yield at, rule
        if query.api_path != query.lookup and query.api_path in lookups:
            yield at, f"is already the lookup of warmQueries[{lookups[query.api_path]}]"
        if owners.setdefault(query.api_path, index) != index:
            yield at, f"is already the apiPath of warmQueries[{owners[query.api_path]}]"


def check_query_names(indexed_queries: Indexed[WarmQuery]) -> Iterator[Violation]:
    """Yield a violation for each query whose name is the lookup (id in URLs) or API path of another query.

    Args:
        indexed_queries: queries, each with its index in the workspace document.
    """
    lookups = {query.lookup: index for index, query in reversed(indexed_queries)}
    paths = {query.api_path: index for index, query in reversed(indexed_queries)}
    for index, query in indexed_queries:
        for member, owners in (("lookup", lookups), ("apiPath", paths)):
            owner = owners.get(query.name, index)
            if owner != index:
                yield ("warmQueries", index, "name"), f"is already the {member} of warmQueries[{owner}]"


def check_query_text(path: DocumentPath, query: WarmQuery) -> Iterator[Violation]:
    """Yield the first violation in a query's text; only rules that need no query engine are checked.

    Args:
        path: path of the query in the workspace document.
        query: a query with valid fields.
    """
    try:
        check_query_restrictions(query.kql)
    except WorkspaceError as error:
        yield (*path, "kql"), format_kql_error(error)


def format_kql_error(error: WorkspaceError) -> str:
    """Format the rule that a query's text violates, with the line and column in the text if known."""
    errors = error.members.get("errors")
    rule = str(errors[0]["message"]) if isinstance(errors, list) else error.detail
    line, column = error.members.get("line"), error.members.get("column")
    return rule if line is None else f"{rule} (line {line}, column {column} of the query)"


def check_declared_parameters(path: DocumentPath, parameters: Sequence[QueryParameter]) -> Iterator[Violation]:
    """Yield violations of declared parameters: duplicate names, and defaults that do not have the declared type.

    Args:
        path: path of the parameter list in the workspace document.
        parameters: declarations in the order of the document.
    """
    seen: set[str] = set()
    for index, parameter in enumerate(parameters):
        if parameter.name in seen:
            yield (*path, index, "name"), "is already the name of another parameter of this query"
        seen.add(parameter.name)
        if not parameter.is_required and (rule := _find_default_value_error(parameter)):
            yield (*path, index, "default"), rule


def _find_default_value_error(parameter: QueryParameter) -> str | None:
    try:
        to_kql_literal(parameter.type, parameter.default)
    except (ValueError, OverflowError) as error:
        return str(error)
    return None
