"""Rules between the items of a workspace document, such as unique names and valid references."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, assert_never

from shared.auth.rights import AccessRight
from shared.catalog.models import ConnectionType, Member, Tier, WorkspaceDocument
from shared.catalog.problems import Path, format_path
from shared.catalog.query_checks import check_api_paths, check_kql, check_names, check_parameters
from shared.catalog.quotas import MAXIMA
from shared.catalog.sections import Sections
from shared.catalog.simulator_models import (
    ChoiceVariable,
    ConstantVariable,
    CounterVariable,
    NormalVariable,
    RampVariable,
    RandomWalkVariable,
    Simulator,
    SineVariable,
    SquareVariable,
    UniformVariable,
    Variable,
)
from shared.validation.names import find_scripts, to_identity_key

type Finding = tuple[Path, str]


def check_sections(sections: Sections) -> Iterator[Finding]:
    """Yield each violation with the path of the invalid field."""
    return chain.from_iterable(rule(sections) for rule in RULES)


def find_warnings(document: WorkspaceDocument) -> Iterator[Finding]:
    """Yield warnings about a valid document."""
    for index, member in enumerate(document.team):
        if len(scripts := find_scripts(member.id)) > 1:
            rule = f"mixes letters of several scripts ({', '.join(scripts)}), some of which look alike"
            yield ("team", index, "id"), rule


def _check_unique(values: Iterable[tuple[Path, str]], name: str) -> Iterator[Finding]:
    """Yield a finding for each value that an earlier path already has."""
    first: dict[str, Path] = {}
    for path, value in values:
        if value in first:
            yield path, f"is already the {name} of {format_path(first[value][:-1]) or format_path(first[value])}"
        else:
            first[value] = path


def _check_limits(sections: Sections) -> Iterator[Finding]:
    head = sections.head
    if head is not None and head.limits is not None and head.tier is not Tier.ENTERPRISE:
        yield ("limits",), "is allowed only with tier enterprise"
    if head is not None and head.limits is None and head.tier is Tier.ENTERPRISE:
        yield ("limits",), "is required with tier enterprise"


def _check_reason_categories(sections: Sections) -> Iterator[Finding]:
    policy = sections.head.policies.provenance if sections.head else None
    seen: set[str] = set()
    for index, category in enumerate(policy.reason_categories if policy else ()):
        if category in seen:
            yield ("policies", "provenance", "reasonCategories", index), "is a duplicate"
        seen.add(category)


def _check_quotas(sections: Sections) -> Iterator[Finding]:
    if sections.head is None:
        return
    quotas, tier = sections.head.policies.quotas, sections.head.tier
    maxima = MAXIMA[tier]
    for name, value, limit in (
        ("streamsPerPrincipal", quotas.streams_per_principal, maxima.streams),
        ("jobsPerPrincipal", quotas.jobs_per_principal, maxima.jobs),
        ("downloadBytes", quotas.download_bytes, maxima.download_bytes),
    ):
        if value is not None and value > limit:
            yield ("policies", "quotas", name), f"must be at most {limit} with tier {tier}"


def _check_members(sections: Sections) -> Iterator[Finding]:
    yield from _check_unique(
        ((("team", index, "id"), to_identity_key(member.id)) for index, member in sections.team), "id"
    )
    oids = ((("team", index, "oid"), member.oid.casefold()) for index, member in sections.team if member.oid)
    yield from _check_unique(oids, "oid")


def _check_lookups(sections: Sections) -> Iterator[Finding]:
    for name, items in (
        ("connections", sections.connections),
        ("surfaces", sections.surfaces),
        ("warmQueries", sections.queries),
        ("dataStores", sections.data_stores),
    ):
        yield from _check_unique((((name, index, "lookup"), item.lookup) for index, item in items), "lookup")


def _check_connections(sections: Sections) -> Iterator[Finding]:
    for index, connection in sections.connections:
        at = ("connections", index)
        source = connection.source
        if source.event_hub is not None and connection.type is not ConnectionType.CLOUD_EVENT_HUB:
            yield (*at, "source", "eventHub"), "is allowed only with type CLOUD_EVENT_HUB"
        if source.event_hub is None and "consumer_group" in source.model_fields_set:
            yield (*at, "source", "consumerGroup"), "is allowed only with eventHub"
        if connection.simulator is not None and connection.type is not ConnectionType.SIMULATOR:
            yield (*at, "simulator"), "is allowed only with type SIMULATOR"
        if connection.simulator is None and connection.type is ConnectionType.SIMULATOR:
            yield (*at, "simulator"), "is required with type SIMULATOR"
        if connection.simulator is not None:
            yield from check_simulator((*at, "simulator"), connection.simulator)


def _check_surfaces(sections: Sections) -> Iterator[Finding]:
    known = sections.declared_keys["connections"]
    for index, surface in sections.surfaces:
        places = [(("surfaces", index, "connections", place), name) for place, name in enumerate(surface.connections)]
        yield from ((path, f"unknown connection: {name}") for path, name in places if name not in known)
        seen: set[str] = set()
        for path, name in places:
            if name in seen:
                yield path, "is a duplicate"
            seen.add(name)


def _check_queries(sections: Sections) -> Iterator[Finding]:
    members = {member.id: member for _, member in sections.team}
    yield from _check_unique(
        ((("warmQueries", index, "name"), query.name) for index, query in sections.queries), "name"
    )
    yield from check_names(sections.queries)
    yield from check_api_paths(sections.queries)
    for index, query in sections.queries:
        at = ("warmQueries", index)
        if query.surface not in sections.declared_keys["surfaces"]:
            yield (*at, "surface"), f"unknown surface: {query.surface}"
        yield from check_kql(at, query)
        yield from check_parameters((*at, "parameters"), query.parameters)
        approver = query.approval.approved_by if query.approval else None
        if approver is not None and (approver in members or approver not in sections.declared_keys["team"]):
            rule = _find_approver_error(members.get(approver))
            if rule:
                yield (*at, "approval", "approvedBy"), rule


def _find_approver_error(approver: Member | None) -> str | None:
    """Return why a member cannot have approved a query; a member who is now disabled can have approved it earlier."""
    if approver is None:
        return "is not a member of the team"
    if AccessRight.WARM_QUERY_APPROVE not in approver.access_rights:
        return f"member lacks the right {AccessRight.WARM_QUERY_APPROVE}"
    return "is a service; only a person can approve" if approver.service else None


def _check_data_stores(sections: Sections) -> Iterator[Finding]:
    databases = [
        (("dataStores", index, "databases", place), database)
        for index, store in sections.data_stores
        for place, database in enumerate(store.databases)
    ]
    yield from _check_unique((((*at, "lookup"), database.lookup) for at, database in databases), "lookup")
    for at, database in databases:
        names = (((*at, "containers", place, "name"), item.name) for place, item in enumerate(database.containers))
        yield from _check_unique(names, "name")


def check_simulator(at: Path, simulator: Simulator) -> Iterator[tuple[Path, str]]:
    """Yield the violations of a simulator.

    Args:
        at: path of the simulator.
        simulator: a simulator with valid fields.
    """
    seen: set[str] = set()
    for index, variable in enumerate(simulator.variables):
        place = (*at, "variables", index)
        if variable.name in seen:
            yield (*place, "name"), "is already the name of another variable of this simulator"
        seen.add(variable.name)
        yield from (((*place, field), message) for field, message in _check_variable(variable))


def _check_variable(variable: Variable) -> Iterator[tuple[str, str]]:
    match variable:
        case SineVariable() | RampVariable() | SquareVariable() | UniformVariable():
            yield from _check_range(variable.min, variable.max)
        case RandomWalkVariable():
            yield from _check_range(variable.min, variable.max)
            if variable.start is not None and not variable.min <= variable.start <= variable.max:
                yield "start", "must be between min and max"
        case ChoiceVariable():
            yield from _check_weights(variable)
        case CounterVariable():
            yield from _check_wrap(variable)
        case ConstantVariable() | NormalVariable():
            return
        case _:
            assert_never(variable)


def _check_range(low: float, high: float) -> Iterator[tuple[str, str]]:
    if low > high:
        yield "min", "must not be above max"


def _check_wrap(variable: CounterVariable) -> Iterator[tuple[str, str]]:
    if variable.wrap is not None and variable.step and (variable.wrap - variable.start) * variable.step <= 0:
        yield "wrap", f"must be {'above' if variable.step > 0 else 'below'} start, in the direction of step"


def _check_weights(variable: ChoiceVariable) -> Iterator[tuple[str, str]]:
    weights = variable.weights
    if weights is None:
        return
    if len(weights) != len(variable.values):
        yield "weights", f"must have one weight for each of the {len(variable.values)} values"
    if min(weights, default=0) < 0 or sum(weights) <= 0:
        yield "weights", "must be 0 or more, and at least one must be above 0"


RULES: Final[tuple[Callable[[Sections], Iterator[Finding]], ...]] = (
    _check_limits,
    _check_reason_categories,
    _check_quotas,
    _check_members,
    _check_lookups,
    _check_connections,
    _check_surfaces,
    _check_queries,
    _check_data_stores,
)
