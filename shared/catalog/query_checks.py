"""The rules of warm queries: API paths and declared parameters."""

from collections.abc import Iterable, Iterator, Sequence

from shared.catalog.kql_restrictions import check_query
from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.parameters import to_literal
from shared.catalog.problems import Path
from shared.errors import WorkspaceError


def check_api_path(api_path: str) -> str | None:
    """Return the rule that an API path breaks by itself, None when it is sound.

    Clients and proxies remove empty and dot segments; ``/approve`` at the end belongs to the approval route.
    """
    if set(api_path.split("/")) & {"", ".", ".."}:
        return "must hold no empty, . or .. segment"
    return "must not end in /approve" if api_path.endswith("/approve") else None


def check_api_paths(queries: Iterable[tuple[int, WarmQuery]]) -> Iterator[tuple[Path, str]]:
    """Yield the broken rules of API paths: each leads to one query, and to no other's lookup."""
    placed = list(queries)
    lookups = {query.lookup: index for index, query in reversed(placed)}
    owners: dict[str, int] = {}
    for index, query in placed:
        if query.api_path is None:
            continue
        at = ("warmQueries", index, "apiPath")
        if rule := check_api_path(query.api_path):
            yield at, rule
        if query.api_path != query.lookup and query.api_path in lookups:
            yield at, f"is the lookup of warmQueries[{lookups[query.api_path]}]"
        if owners.setdefault(query.api_path, index) != index:
            yield at, f"is already the apiPath of warmQueries[{owners[query.api_path]}]"


def check_names(queries: Iterable[tuple[int, WarmQuery]]) -> Iterator[tuple[Path, str]]:
    """Yield the names that lead to another query as its lookup or API path."""
    placed = list(queries)
    lookups = {query.lookup: index for index, query in reversed(placed)}
    paths = {query.api_path: index for index, query in reversed(placed)}
    for index, query in placed:
        for what, owners in (("lookup", lookups), ("apiPath", paths)):
            owner = owners.get(query.name, index)
            if owner != index:
                yield ("warmQueries", index, "name"), f"is the {what} of warmQueries[{owner}]"


def check_kql(at: Path, query: WarmQuery) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with a query's text as far as that is known without an engine.

    Args:
        at: the path of the query.
        query: the query.
    """
    try:
        check_query(query.kql)
    except WorkspaceError as error:
        yield (*at, "kql"), format_kql_error(error)


def format_kql_error(error: WorkspaceError) -> str:
    """Return the rule that a query's text breaks, with its place in that text where it has one."""
    listed = error.members.get("errors")
    rule = str(listed[0]["message"]) if isinstance(listed, list) else error.detail
    line, column = error.members.get("line"), error.members.get("column")
    return rule if line is None else f"{rule} (line {line}, column {column} of the query)"


def check_parameters(at: Path, parameters: Sequence[QueryParameter]) -> Iterator[tuple[Path, str]]:
    """Yield the broken rules of declared parameters: names unique, defaults of the declared type.

    Args:
        at: the path of the list.
        parameters: the declared parameters.
    """
    seen: set[str] = set()
    for index, parameter in enumerate(parameters):
        if parameter.name in seen:
            yield (*at, index, "name"), "is already the name of another parameter of this query"
        seen.add(parameter.name)
        if not parameter.required and (rule := _default_rule(parameter)):
            yield (*at, index, "default"), rule


def _default_rule(parameter: QueryParameter) -> str | None:
    try:
        to_literal(parameter.type, parameter.default)
    except (ValueError, OverflowError) as error:
        return str(error)
    return None
