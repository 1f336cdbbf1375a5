"""Rules between the items of a workspace document, such as unique names and valid references."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Final, assert_never

from shared.auth.rights import AccessRight
from shared.catalog.alert_rule_models import iterate_rule_errors
from shared.catalog.fields import find_reserved_id_error
from shared.catalog.models import DEFAULT_CONSUMER_GROUP, ConnectionType, Member, Tier, WorkspaceDocument
from shared.catalog.problems import DocumentPath, FieldViolation, Violation, format_path
from shared.catalog.query_checks import check_api_paths, check_declared_parameters, check_query_names, check_query_text
from shared.catalog.quotas import MAXIMA
from shared.catalog.sections import Sections
from shared.catalog.signal_models import check_signals
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
from shared.validation.names import find_unicode_scripts, to_identity_key


def check_sections(sections: Sections, *, checks_new_items: bool = True) -> Iterator[Violation]:
    """Check all rules between the items of a workspace document; yield each violation with the invalid field's path.

    Args:
        sections: valid items of the document, by section.
        checks_new_items: True to check also :data:`NEW_ITEM_RULES`; every item is then treated as a new item.
    """
    rules = (*RULES, *NEW_ITEM_RULES) if checks_new_items else RULES
    return chain.from_iterable(rule(sections) for rule in rules)


def iterate_warnings(document: WorkspaceDocument, retained_queries: Collection[str] = ()) -> Iterator[Violation]:
    """Yield all warnings about a valid document: about member ids, and about unknown queries of alert rules.

    Args:
        document: a valid workspace document.
        retained_queries: as in :func:`iterate_unknown_query_warnings`.
    """
    yield from iterate_member_id_warnings(document)
    yield from iterate_unknown_query_warnings(document, retained_queries)


def iterate_member_id_warnings(document: WorkspaceDocument) -> Iterator[Violation]:
    """Yield a warning for each member id of a valid document that has letters of several scripts."""
    for index, member in enumerate(document.team):
        if len(scripts := find_unicode_scripts(member.id)) > 1:
            rule = f"mixes letters of several scripts ({', '.join(scripts)}), some of which look alike"
            yield ("team", index, "id"), rule


def iterate_unknown_query_warnings(
    document: WorkspaceDocument, retained_queries: Collection[str] = ()
) -> Iterator[Violation]:
    """Yield a warning for each alert rule of a valid document whose query does not exist.

    Args:
        document: a valid workspace document.
        retained_queries: lookups (ids in URLs) of queries that the workspace keeps although the document lacks them;
            rules may name these queries.
    """
    queries = {query.lookup for query in document.warm_queries}.union(retained_queries)
    for index, alert_rule in enumerate(document.alert_rules):
        if alert_rule.query is not None and alert_rule.query not in queries:
            rule = f"the document has no warm query {alert_rule.query}; without it, the rule has the state `error`"
            yield ("alertRules", index, "query"), rule


def _iterate_duplicate_value_errors(
    paths_and_values: Iterable[tuple[DocumentPath, str]], field: str
) -> Iterator[Violation]:
    """Yield a violation for each value that also occurs at an earlier path.

    ``field`` is the name of the values in the error messages, such as ``oid``.
    """
    first: dict[str, DocumentPath] = {}
    for path, value in paths_and_values:
        if value in first:
            yield path, f"is already the {field} of {format_path(first[value][:-1]) or format_path(first[value])}"
        else:
            first[value] = path


def _check_tier_limits(sections: Sections) -> Iterator[Violation]:
    head = sections.head
    if head is not None and head.limits is not None and head.tier is not Tier.ENTERPRISE:
        yield ("limits",), "is allowed only with tier enterprise"
    if head is not None and head.limits is None and head.tier is Tier.ENTERPRISE:
        yield ("limits",), "is required with tier enterprise"


def _check_reason_categories(sections: Sections) -> Iterator[Violation]:
    policy = sections.head.policies.provenance if sections.head else None
    yield from _iterate_repeated_name_errors(
        ("policies", "provenance", "reasonCategories"), policy.reason_categories if policy else ()
    )


def _check_signature_policy(sections: Sections) -> Iterator[Violation]:
    if sections.head is None:
        return
    policies = sections.head.policies
    at = ("policies", "signatures")
    if policies.provenance is None:
        yield from (
            ((*at, kind), "must be `off` without policies.provenance")
            for kind in policies.signatures.kinds_that_require_signature
        )
    yield from _iterate_repeated_name_errors((*at, "meanings"), policies.signatures.meanings)


def _iterate_repeated_name_errors(path: DocumentPath, names: Iterable[str]) -> Iterator[Violation]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            yield (*path, index), "occurs more than once in this list"
        seen.add(name)


def _check_quotas(sections: Sections) -> Iterator[Violation]:
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


def _check_unique_member_ids(sections: Sections) -> Iterator[Violation]:
    yield from _iterate_duplicate_value_errors(
        ((("team", index, "id"), to_identity_key(member.id)) for index, member in sections.team), "id"
    )
    oids = ((("team", index, "oid"), member.oid.casefold()) for index, member in sections.team if member.oid)
    yield from _iterate_duplicate_value_errors(oids, "oid")


def check_new_member_ids(sections: Sections, stored_member_ids: Collection[str] = ()) -> Iterator[Violation]:
    """Yield a violation for each new member whose id is reserved for audit events of the service.

    Args:
        sections: valid items of the document, by section.
        stored_member_ids: ids of stored members, which are not checked.
    """
    for index, member in sections.team:
        if member.id not in stored_member_ids and (rule := find_reserved_id_error(member.id)):
            yield ("team", index, "id"), rule


def _check_unique_lookups(sections: Sections) -> Iterator[Violation]:
    for name, items in (
        ("connections", sections.connections),
        ("surfaces", sections.surfaces),
        ("warmQueries", sections.queries),
        ("dataStores", sections.data_stores),
        ("alertRules", sections.alert_rules),
    ):
        yield from _iterate_duplicate_value_errors(
            (((name, index, "lookup"), item.lookup) for index, item in items), "lookup"
        )
    clients = ((("oauthClients", index, "id"), client.id) for index, client in sections.oauth_clients)
    yield from _iterate_duplicate_value_errors(clients, "id")


def _check_connections(sections: Sections) -> Iterator[Violation]:
    for index, connection in sections.connections:
        at = ("connections", index)
        source = connection.source
        if source.event_hub is not None and connection.type is not ConnectionType.CLOUD_EVENT_HUB:
            yield (*at, "source", "eventHub"), "is allowed only with type CLOUD_EVENT_HUB"
        if source.event_hub is None and source.consumer_group != DEFAULT_CONSUMER_GROUP:
            yield (*at, "source", "consumerGroup"), "is allowed only with eventHub"
        if connection.simulator is not None and connection.type is not ConnectionType.SIMULATOR:
            yield (*at, "simulator"), "is allowed only with type SIMULATOR"
        if connection.simulator is None and connection.type is ConnectionType.SIMULATOR:
            yield (*at, "simulator"), "is required with type SIMULATOR"
        if connection.simulator is not None:
            yield from check_simulator((*at, "simulator"), connection.simulator)
        yield from check_signals((*at, "signals"), connection.signals)


def _check_surfaces(sections: Sections) -> Iterator[Violation]:
    known = sections.declared_keys["connections"]
    for index, surface in sections.surfaces:
        at = ("surfaces", index, "connections")
        for place, name in enumerate(surface.connections):
            if name not in known:
                yield (*at, place), f"unknown connection: {name}"
        yield from _iterate_repeated_name_errors(at, surface.connections)


def _check_queries(sections: Sections) -> Iterator[Violation]:
    yield from _iterate_duplicate_value_errors(
        ((("warmQueries", index, "name"), query.name) for index, query in sections.queries), "name"
    )
    yield from check_query_names(sections.queries)
    yield from check_api_paths(sections.queries)
    for index, query in sections.queries:
        at = ("warmQueries", index)
        if query.surface not in sections.declared_keys["surfaces"]:
            yield (*at, "surface"), f"unknown surface: {query.surface}"
        yield from check_query_text(at, query)
        yield from check_declared_parameters((*at, "parameters"), query.parameters)


def check_approvers(sections: Sections, queries_with_stored_approval: Collection[str] = ()) -> Iterator[Violation]:
    """Yield a violation for each declared approval whose approver cannot approve now.

    Args:
        sections: valid items of the document, by section.
        queries_with_stored_approval: lookups (ids in URLs) of queries whose approval is stored already and is not
            checked.
    """
    members = {member.id: member for _, member in sections.team}
    for index, query in sections.queries:
        approver = query.approval.approved_by if query.approval else None
        if query.lookup in queries_with_stored_approval:
            continue
        if approver is not None and (approver in members or approver not in sections.declared_keys["team"]):
            rule = _find_approver_error(members.get(approver))
            if rule:
                yield ("warmQueries", index, "approval", "approvedBy"), rule


def _find_approver_error(approver: Member | None) -> str | None:
    """Return why a declared approver of a query cannot approve; None if the approver can.

    ``approver`` is None if no member has the approver's id. A disabled member is accepted, because the member may have
    approved the query before being disabled.
    """
    if approver is None:
        return "is not a member of the team"
    if AccessRight.WARM_QUERY_APPROVE not in approver.access_rights:
        return f"must be a member with the right {AccessRight.WARM_QUERY_APPROVE}"
    return "is a service; only a person can approve" if approver.service else None


def _check_data_stores(sections: Sections) -> Iterator[Violation]:
    databases = [
        (("dataStores", index, "databases", place), database)
        for index, store in sections.data_stores
        for place, database in enumerate(store.databases)
    ]
    yield from _iterate_duplicate_value_errors(
        (((*at, "lookup"), database.lookup) for at, database in databases), "lookup"
    )
    for at, database in databases:
        names = (((*at, "containers", place, "name"), item.name) for place, item in enumerate(database.containers))
        yield from _iterate_duplicate_value_errors(names, "name")


def _check_alert_rules(sections: Sections) -> Iterator[Violation]:
    """Check alert rules. The queries of rules can be unknown, because a query can be deleted while a rule uses it."""
    for index, rule in sections.alert_rules:
        at = ("alertRules", index)
        yield from (((*at, *path), message) for path, message in iterate_rule_errors(rule))
        if rule.surface not in sections.declared_keys["surfaces"]:
            yield (*at, "surface"), f"unknown surface: {rule.surface}"
        for place, lookup in enumerate(rule.connections):
            if lookup not in sections.declared_keys["connections"]:
                yield (*at, "connections", place), f"unknown connection: {lookup}"


def check_simulator(path: DocumentPath, simulator: Simulator) -> Iterator[Violation]:
    """Yield contradictions between the fields of a simulator, each with the path of the invalid field.

    Args:
        path: path of the simulator in the workspace document.
        simulator: a simulator with valid fields.
    """
    seen: set[str] = set()
    for index, variable in enumerate(simulator.variables):
        place = (*path, "variables", index)
        if variable.name in seen:
            yield (*place, "name"), "is already the name of another variable of this simulator"
        seen.add(variable.name)
        yield from (((*place, field), message) for field, message in _check_simulated_variable(variable))


def _check_simulated_variable(variable: Variable) -> Iterator[FieldViolation]:
    match variable:
        case SineVariable() | RampVariable() | SquareVariable() | UniformVariable():
            yield from _check_min_and_max(variable.min, variable.max)
        case RandomWalkVariable():
            yield from _check_min_and_max(variable.min, variable.max)
            if variable.start is not None and not variable.min <= variable.start <= variable.max:
                yield "start", "must be between min and max"
        case ChoiceVariable():
            yield from _check_choice_weights(variable)
        case CounterVariable():
            yield from _check_counter_wrap(variable)
        case ConstantVariable() | NormalVariable():
            return
        case _:
            assert_never(variable)


def _check_min_and_max(minimum: float, maximum: float) -> Iterator[FieldViolation]:
    if minimum > maximum:
        yield "min", "must not be above max"


def _check_counter_wrap(variable: CounterVariable) -> Iterator[FieldViolation]:
    if variable.wrap is not None and variable.step and (variable.wrap - variable.start) * variable.step <= 0:
        yield "wrap", f"must be {'above' if variable.step > 0 else 'below'} start, because step is {variable.step}"


def _check_choice_weights(variable: ChoiceVariable) -> Iterator[FieldViolation]:
    weights = variable.weights
    if weights is None:
        return
    if len(weights) != len(variable.values):
        yield "weights", f"must have one weight for each of the {len(variable.values)} values"
    if min(weights, default=0) < 0 or sum(weights) <= 0:
        yield "weights", "must be 0 or more, and at least one must be above 0"


RULES: Final[tuple[Callable[[Sections], Iterator[Violation]], ...]] = (
    _check_tier_limits,
    _check_reason_categories,
    _check_signature_policy,
    _check_quotas,
    _check_unique_member_ids,
    _check_unique_lookups,
    _check_connections,
    _check_surfaces,
    _check_queries,
    _check_data_stores,
    _check_alert_rules,
)

NEW_ITEM_RULES: Final[tuple[Callable[[Sections], Iterator[Violation]], ...]] = (check_new_member_ids, check_approvers)
"""Rules from which stored items are exempt."""
