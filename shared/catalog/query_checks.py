"""The rules of warm queries: API paths and declared parameters."""

from collections.abc import Iterable, Iterator, Sequence

from shared.catalog.models import QueryParameter, WarmQuery
from shared.catalog.parameters import literal
from shared.catalog.problems import Path


def api_path_rule(api_path: str) -> str | None:
    """Return the rule that an API path breaks by itself, None when it is sound.

    Clients and proxies remove empty and dot segments; ``/approve`` at the end belongs to the approval route.
    """
    if set(api_path.split("/")) & {"", ".", ".."}:
        return "must hold no empty, . or .. segment"
    return "must not end in /approve" if api_path.endswith("/approve") else None


def path_findings(queries: Iterable[tuple[int, WarmQuery]]) -> Iterator[tuple[Path, str]]:
    """Yield the broken rules of API paths: each leads to one query, and to no other's lookup."""
    placed = list(queries)
    lookups = {query.lookup: index for index, query in reversed(placed)}
    owners: dict[str, int] = {}
    for index, query in placed:
        if query.api_path is None:
            continue
        at = ("warmQueries", index, "apiPath")
        if rule := api_path_rule(query.api_path):
            yield at, rule
        if query.api_path != query.lookup and query.api_path in lookups:
            yield at, f"is the lookup of warmQueries[{lookups[query.api_path]}]"
        if owners.setdefault(query.api_path, index) != index:
            yield at, f"is already the apiPath of warmQueries[{owners[query.api_path]}]"


def parameter_findings(at: Path, parameters: Sequence[QueryParameter]) -> Iterator[tuple[Path, str]]:
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
        literal(parameter.type, parameter.default)
    except (ValueError, OverflowError) as error:
        return str(error)
    return None
