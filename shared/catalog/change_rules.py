"""Rules for changes that callers request over HTTPS: rights, references, administrators and read-only settings.

Single items and workspace documents follow the same rules. The rules read the stored catalog, so they must
be checked inside the function that is passed to ``CatalogService.commit_api_changes``, which is called again after a
concurrent change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from shared.auth.principals import Principal, build_unauthenticated_error
from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.catalog.alert_rule_models import has_same_query_use
from shared.catalog.container_rules import check_partition_key_paths_unchanged
from shared.catalog.diff import ItemChange
from shared.catalog.items import SINGLETON_KEY, ItemId, ItemKind
from shared.catalog.member_states import find_retired_member_ids
from shared.catalog.ports import StoredCatalog
from shared.errors import MAX_LISTED, FieldError, Kind, WorkspaceError, build_invalid_fields_error
from shared.validation.names import to_identity_key

type Definition = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Caller:
    """Team member who requests catalog changes, with the rights of the credential.

    Attributes:
        user_id: id of the member.
        rights: rights of the credential, which can be fewer than the member's rights.
    """

    user_id: str
    rights: frozenset[AccessRight]

    @classmethod
    def from_principal(cls, principal: Principal) -> "Caller":
        """Build the caller from the authenticated principal of a request."""
        return cls(principal.member_id, principal.rights)


class TakenMemberId(NamedTuple):
    """Id or object id of a changed member that another member has.

    Attributes:
        member_id: id of the changed member.
        field: name of the field, ``id`` or ``oid``.
        rule: the violated rule.
    """

    member_id: str
    field: str
    rule: str


def can_see_items(kind: ItemKind, rights: frozenset[AccessRight]) -> bool:
    """Return whether a caller may see items of a kind: the right to read them or the right to change them suffices."""
    return not rights.isdisjoint((_READ_RIGHTS.get(kind, AccessRight.CATALOG_READ), KIND_RIGHTS[kind]))


def check_changes(stored: StoredCatalog, changes: Sequence[ItemChange], caller: Caller) -> None:
    """Check all rules for a set of catalog changes that is committed together.

    Rules of one item alone, such as its field types, are not checked here.

    Args:
        stored: the catalog before the changes.
        changes: additions, changes and removals; each item at most once.
        caller: the caller of the request.

    Raises:
        WorkspaceError: the first of these errors:
            UNAUTHENTICATED if the caller was disabled or removed since the request was authenticated;
            INVALID naming the fields of unknown references and of changed read-only settings;
            FORBIDDEN ``ACCESS_RIGHT_MISSING`` if the caller may not change items of a kind, ``RIGHT_NOT_HELD`` if a
            changed member has a right that the caller lacks;
            CONFLICT ``SELF_LOCKOUT`` if callers disable or remove themselves or their right to manage the team,
            ``LAST_ADMINISTRATOR`` if no enabled person would have the role Admin, ``MEMBER_ID_RETIRED``,
            ``MEMBER_ID_TAKEN`` or ``MEMBER_OID_TAKEN`` if an id cannot be used, ``CONNECTION_IN_USE``,
            ``SURFACE_IN_USE`` or ``MEMBER_IN_USE`` if an item that is to be removed is used, ``PROVENANCE_REQUIRED``
            if provenance would be switched off, ``PARTITION_KEY_IMMUTABLE`` if a partition key path would change.
    """
    step = _ChangeSet(stored, changes)
    caller = _restrict_to_current_rights(caller, step)
    found = chain(_iterate_unknown_references(step), _iterate_read_only_setting_changes(step))
    if errors := list(islice(found, MAX_LISTED + 1)):
        raise build_invalid_fields_error(errors)
    for rule in RULES:
        rule(step, caller)


def check_members_unique(stored: StoredCatalog, changes: Sequence[ItemChange]) -> None:
    """Check that no changed member has the id or the object id of another member, also of one that is not changed.

    Args:
        stored: the catalog before the changes.
        changes: additions, changes and removals; each item at most once.

    Raises:
        WorkspaceError: CONFLICT ``MEMBER_ID_TAKEN`` or ``MEMBER_OID_TAKEN``.
    """
    _check_member_ids_unique(_ChangeSet(stored, changes))


def find_taken_member_ids(stored: StoredCatalog, changes: Sequence[ItemChange]) -> list[TakenMemberId]:
    """Return the ids and object ids of changed members that another member has.

    Args:
        stored: the catalog before the changes.
        changes: additions, changes and removals; each item at most once.
    """
    return list(_iterate_taken_member_ids(_ChangeSet(stored, changes)))


@dataclass(frozen=True)
class _ChangeSet:
    """Definitions of the catalog's items before and after a set of changes."""

    stored: StoredCatalog
    changes: Sequence[ItemChange]

    @cached_property
    def before(self) -> Mapping[ItemId, Definition]:
        """Definitions of catalog items before the changes, by kind and key of the item."""
        return {(item.kind, item.key): item.definition for item in self.stored.items}

    @cached_property
    def after(self) -> Mapping[ItemId, Definition]:
        """Definitions of catalog items after the changes, by kind and key of the item."""
        changed = {(change.kind, change.key): change.after for change in self.changes}
        definitions = {**self.before, **changed}
        return {item: definition for item, definition in definitions.items() if definition is not None}

    @cached_property
    def added_or_replaced_items(self) -> frozenset[ItemId]:
        """Kinds and keys of the catalog items that the changes add or replace."""
        return frozenset((change.kind, change.key) for change in self.changes if change.after is not None)

    def iterate_keys_and_definitions_after(self, kind: ItemKind) -> Iterator[tuple[str, Definition]]:
        """Yield the keys and definitions of all items of a kind after the changes."""
        return ((key, definition) for (found, key), definition in self.after.items() if found == kind)

    def list_changes(self, kind: ItemKind) -> list[ItemChange]:
        """Return the changes to catalog items of a kind."""
        return [change for change in self.changes if change.kind == kind]


def _iterate_unknown_references(change_set: _ChangeSet) -> Iterator[FieldError]:
    """Yield an error for each reference to an item that exists neither before nor after the changes.

    A reference to an item that the changes remove is no error here, because another rule reports it as a conflict.
    Warm queries are an exception: they can be removed while alert rules use them. An alert rule that uses its query as
    the stored rule does is valid, even if the query does not exist any more.
    """
    for kind, key in change_set.added_or_replaced_items:
        definition = change_set.after[kind, key]
        if kind == ItemKind.SURFACE:
            for index, lookup in enumerate(definition["connections"]):
                if not _is_item_before_or_after_changes(change_set, ItemKind.CONNECTION, lookup):
                    yield FieldError(f"connections[{index}]", f"unknown connection: {lookup}")
        if kind == ItemKind.WARM_QUERY and not _is_item_before_or_after_changes(
            change_set, ItemKind.SURFACE, definition["surface"]
        ):
            yield FieldError("surface", f"unknown surface: {definition['surface']}")
        if kind == ItemKind.ALERT_RULE:
            yield from _iterate_unknown_references_of_rule(change_set, key, definition)


def _iterate_unknown_references_of_rule(change_set: _ChangeSet, key: str, rule: Definition) -> Iterator[FieldError]:
    if not _is_item_before_or_after_changes(change_set, ItemKind.SURFACE, rule["surface"]):
        yield FieldError("surface", f"unknown surface: {rule['surface']}")
    query = rule.get("query")
    if (
        query is not None
        and (ItemKind.WARM_QUERY, query) not in change_set.after
        and not has_same_query_use(change_set.before.get((ItemKind.ALERT_RULE, key)), rule)
    ):
        yield FieldError("query", f"unknown warm query: {query}")
    for index, lookup in enumerate(rule.get("connections", ())):
        if not _is_item_before_or_after_changes(change_set, ItemKind.CONNECTION, lookup):
            yield FieldError(f"connections[{index}]", f"unknown connection: {lookup}")


def _is_item_before_or_after_changes(change_set: _ChangeSet, kind: ItemKind, key: str) -> bool:
    return (kind, key) in change_set.after or (kind, key) in change_set.before


def _iterate_read_only_setting_changes(change_set: _ChangeSet) -> Iterator[FieldError]:
    for change in change_set.list_changes(ItemKind.SETTINGS):
        before, after = change.before or {}, change.after or {}
        for name in ("tier", "limits"):
            if change.before is not None and before.get(name) != after.get(name):
                yield FieldError(name, "is read-only; omit it or send the stored value")


def _restrict_to_current_rights(caller: Caller, change_set: _ChangeSet) -> Caller:
    """Return the caller without rights that the member has lost since the request was authenticated.

    Raises:
        WorkspaceError: UNAUTHENTICATED if the member was disabled or removed since then.
    """
    member = change_set.before.get((ItemKind.MEMBER, caller.user_id))
    if member is None or not member.get("enabled", True):
        raise build_unauthenticated_error("The member who owns this credential was disabled or removed meanwhile.")
    current = _get_member_rights(member)
    return Caller(caller.user_id, frozenset(right for right in caller.rights if right in current))


def _check_rights_to_change_kinds(change_set: _ChangeSet, caller: Caller) -> None:
    """Check that the caller has the right to change each kind of catalog item that the changes contain."""
    needed = dict.fromkeys(right for kind, right in KIND_RIGHTS.items() if change_set.list_changes(kind))
    missing = sorted(right for right in needed if right not in caller.rights)
    if missing:
        detail = f"The changes require access rights that the caller lacks: {', '.join(missing)}."
        raise WorkspaceError(
            Kind.FORBIDDEN, "ACCESS_RIGHT_MISSING", detail, accessRight=missing[0], accessRights=missing
        )


def _check_rights_over_changed_members(change_set: _ChangeSet, caller: Caller) -> None:
    """Raise an error if a changed member has, before or after the change, a right that the caller lacks."""
    affected = {
        right
        for change in change_set.list_changes(ItemKind.MEMBER)
        for definition in (change.before, change.after)
        if definition is not None
        for right in _get_member_rights(definition)
    }
    missing = sorted(affected - caller.rights)
    if missing:
        detail = f"Only a caller with all rights of the member can change the member; missing: {', '.join(missing)}."
        raise WorkspaceError(Kind.FORBIDDEN, "RIGHT_NOT_HELD", detail, accessRights=missing)


def _get_member_rights(member: Definition) -> frozenset[str]:
    """Return the rights of a team member.

    A role that this version does not know, because a newer version wrote it, is returned as a right that no caller has.
    Therefore no caller can change this member.
    """
    role, own = str(member["role"]), frozenset(map(str, member.get("rights", ())))
    known = frozenset(map(str, ROLE_RIGHTS[Role(role)])) if role in set(Role) else frozenset({role})
    return known | own


def _check_no_self_lockout(change_set: _ChangeSet, caller: Caller) -> None:
    for change in change_set.list_changes(ItemKind.MEMBER):
        if change.key != caller.user_id or change.before is None:
            continue
        if change.after is None or not change.after["enabled"]:
            raise WorkspaceError(Kind.CONFLICT, "SELF_LOCKOUT", "Members cannot disable or remove themselves.")
        lost = _get_member_rights(change.before) - _get_member_rights(change.after)
        if AccessRight.TEAM_MANAGE in lost:
            detail = f"Members cannot remove their own right {AccessRight.TEAM_MANAGE}."
            raise WorkspaceError(Kind.CONFLICT, "SELF_LOCKOUT", detail)


def _check_administrator_remains(change_set: _ChangeSet, _: Caller) -> None:
    if _has_administrator(change_set.before) and not _has_administrator(change_set.after):
        detail = "At least one enabled person must have the role Admin; give it to another person first."
        raise WorkspaceError(Kind.CONFLICT, "LAST_ADMINISTRATOR", detail)


def _has_administrator(definitions: Mapping[ItemId, Definition]) -> bool:
    return any(
        member["role"] == Role.ADMIN and member.get("enabled", True) and not member.get("service", False)
        for (kind, _), member in definitions.items()
        if kind == ItemKind.MEMBER
    )


def _check_member_ids(change_set: _ChangeSet, _: Caller) -> None:
    """Raise an error for a new id that belonged to a removed member, and for an id that another member has."""
    added = _list_new_member_ids(change_set)
    retired = {to_identity_key(key) for key in find_retired_member_ids(change_set.stored)} if added else set()
    for key in added:
        if to_identity_key(key) in retired:
            detail = f"The id {key} belonged to a removed member and cannot be used again."
            raise WorkspaceError(Kind.CONFLICT, "MEMBER_ID_RETIRED", detail)
    _check_member_ids_unique(change_set)


def _list_new_member_ids(change_set: _ChangeSet) -> list[str]:
    return [change.key for change in change_set.list_changes(ItemKind.MEMBER) if change.before is None]


def _check_member_ids_unique(change_set: _ChangeSet) -> None:
    taken = next(_iterate_taken_member_ids(change_set), None)
    if taken is None:
        return
    detail = f"Field `{taken.field}` of {taken.member_id} {taken.rule}."
    if taken.field == "id":
        raise WorkspaceError(Kind.CONFLICT, "MEMBER_ID_TAKEN", detail)
    raise WorkspaceError(Kind.CONFLICT, "MEMBER_OID_TAKEN", detail)


def _iterate_taken_member_ids(change_set: _ChangeSet) -> Iterator[TakenMemberId]:
    return chain(_iterate_similar_ids_of_new_members(change_set), _iterate_taken_object_ids(change_set))


def _iterate_similar_ids_of_new_members(change_set: _ChangeSet) -> Iterator[TakenMemberId]:
    added = _list_new_member_ids(change_set)
    if not added:
        return
    owners = _group_values_by_key(
        (to_identity_key(key), key) for key, _ in change_set.iterate_keys_and_definitions_after(ItemKind.MEMBER)
    )
    for key in added:
        others = [owner for owner in owners[to_identity_key(key)] if owner != key]
        if others:
            rule = f"looks like the id of another member: {others[0]}; use that id or choose another one"
            yield TakenMemberId(key, "id", rule)


def _iterate_taken_object_ids(change_set: _ChangeSet) -> Iterator[TakenMemberId]:
    members = [
        (key, member.get("oid")) for key, member in change_set.iterate_keys_and_definitions_after(ItemKind.MEMBER)
    ]
    for oid, owners in _group_values_by_key((str(oid).casefold(), key) for key, oid in members if oid).items():
        changed = [key for key in owners if (ItemKind.MEMBER, key) in change_set.added_or_replaced_items]
        if len(owners) > 1 and changed:
            others = [key for key in sorted(owners) if key != changed[0]]
            stated = f"{oid} is already the object id of {', '.join(others)}"
            rule = f"must be unique; {stated}; remove it there first or use another one"
            yield TakenMemberId(changed[0], "oid", rule)


def _check_removed_connections_unused(change_set: _ChangeSet, _: Caller) -> None:
    users = (
        (lookup, key)
        for key, surface in change_set.iterate_keys_and_definitions_after(ItemKind.SURFACE)
        for lookup in dict.fromkeys(surface["connections"])
    )
    watchers = (
        (lookup, key)
        for key, rule in change_set.iterate_keys_and_definitions_after(ItemKind.ALERT_RULE)
        for lookup in rule.get("connections", ())
    )
    surfaces = _list_dependants_of_removed_items(change_set, ItemKind.CONNECTION, users)
    alert_rules = _list_dependants_of_removed_items(change_set, ItemKind.CONNECTION, watchers)
    if surfaces or alert_rules:
        dependants_text = _format_dependants({"surfaces": surfaces, "alert rules": alert_rules})
        detail = f"The connection is used by {dependants_text}. Remove it from them first."
        raise WorkspaceError(
            Kind.CONFLICT, "CONNECTION_IN_USE", detail, **_build_used_by_properties(surfaces, alert_rules)
        )


def _check_removed_surfaces_unused(change_set: _ChangeSet, _: Caller) -> None:
    users = (
        (str(query["surface"]), key)
        for key, query in change_set.iterate_keys_and_definitions_after(ItemKind.WARM_QUERY)
    )
    rules = (
        (str(rule["surface"]), key) for key, rule in change_set.iterate_keys_and_definitions_after(ItemKind.ALERT_RULE)
    )
    queries = _list_dependants_of_removed_items(change_set, ItemKind.SURFACE, users)
    alert_rules = _list_dependants_of_removed_items(change_set, ItemKind.SURFACE, rules)
    if queries or alert_rules:
        dependants_text = _format_dependants({"warm queries": queries, "alert rules": alert_rules})
        detail = f"The surface is used by {dependants_text}. Delete or move them first."
        raise WorkspaceError(Kind.CONFLICT, "SURFACE_IN_USE", detail, **_build_used_by_properties(queries, alert_rules))


def _format_dependants(keys_by_kind: Mapping[str, list[str]]) -> str:
    return " and ".join(f"{kind}: {', '.join(keys)}" for kind, keys in keys_by_kind.items() if keys)


def _build_used_by_properties(other_dependants: list[str], alert_rules: list[str]) -> Mapping[str, list[str]]:
    """Return the properties of an error that name the catalog items which use an item.

    ``usedBy`` lists all of these items, alert rules last. ``alertRules`` repeats the alert rules, because an item of
    another kind can have the same lookup (id in URLs).
    """
    rules = {"alertRules": alert_rules} if alert_rules else {}
    return {"usedBy": [*other_dependants, *alert_rules], **rules}


def _check_removed_members_unused(change_set: _ChangeSet, _: Caller) -> None:
    users = (
        (str(query["approval"]["approvedBy"]), key)
        for key, query in change_set.iterate_keys_and_definitions_after(ItemKind.WARM_QUERY)
        if query.get("approval")
    )
    if used_by := _list_dependants_of_removed_items(change_set, ItemKind.MEMBER, users):
        detail = f"The member approved warm queries: {', '.join(used_by)}. Disable the member instead."
        raise WorkspaceError(Kind.CONFLICT, "MEMBER_IN_USE", detail, usedBy=used_by)


def _list_dependants_of_removed_items(
    change_set: _ChangeSet, kind: ItemKind, used_and_dependant_keys: Iterable[tuple[str, str]]
) -> list[str]:
    """Return the sorted keys of the items that still use a removed item of a kind.

    Args:
        change_set: the catalog before and after the changes.
        kind: kind of the used items.
        used_and_dependant_keys: pairs of the key of a used item and the key of the item that uses it.
    """
    removed = {change.key for change in change_set.list_changes(kind) if change.after is None}
    return sorted({dependant for used, dependant in used_and_dependant_keys if used in removed})


def _check_provenance_retained(change_set: _ChangeSet, _: Caller) -> None:
    item = (ItemKind.SETTINGS, SINGLETON_KEY)
    if _has_provenance_policy(change_set.before.get(item)) and not _has_provenance_policy(change_set.after.get(item)):
        detail = "Provenance cannot be switched off over HTTPS; keep `policies.provenance`."
        raise WorkspaceError(Kind.CONFLICT, "PROVENANCE_REQUIRED", detail)


def _check_partition_keys_unchanged(change_set: _ChangeSet, _: Caller) -> None:
    check_partition_key_paths_unchanged(change_set.list_changes(ItemKind.CONTAINER))


def _has_provenance_policy(settings: Definition | None) -> bool:
    return settings is not None and settings["policies"].get("provenance") is not None


def _group_values_by_key(keys_and_values: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, value in keys_and_values:
        groups.setdefault(key, []).append(value)
    return groups


KIND_RIGHTS: Final[Mapping[ItemKind, AccessRight]] = {
    ItemKind.WORKSPACE: AccessRight.POLICY_MANAGE,
    ItemKind.SETTINGS: AccessRight.POLICY_MANAGE,
    ItemKind.MEMBER: AccessRight.TEAM_MANAGE,
    ItemKind.CONNECTION: AccessRight.CATALOG_MANAGE,
    ItemKind.SURFACE: AccessRight.CATALOG_MANAGE,
    ItemKind.WARM_QUERY: AccessRight.WARM_QUERY_MANAGE,
    ItemKind.DATA_STORE: AccessRight.DATA_STORE_MANAGE,
    ItemKind.CONTAINER: AccessRight.DATA_STORE_MANAGE,
    ItemKind.ALERT_RULE: AccessRight.ALERT_MANAGE,
    ItemKind.OAUTH_CLIENT: AccessRight.TEAM_MANAGE,
}
"""Access right that a change of an item requires, by kind of the item."""

_READ_RIGHTS: Final[Mapping[ItemKind, AccessRight]] = {
    ItemKind.MEMBER: AccessRight.TEAM_READ,
    ItemKind.DATA_STORE: AccessRight.DATA_STORE_READ,
    ItemKind.CONTAINER: AccessRight.DATA_STORE_READ,
    ItemKind.ALERT_RULE: AccessRight.ALERT_READ,
    ItemKind.OAUTH_CLIENT: AccessRight.TEAM_READ,
}
"""Access right to read items, by their kind; items of other kinds require the right to read the catalog."""

RULES: Final[tuple[Callable[[_ChangeSet, Caller], None], ...]] = (
    _check_rights_to_change_kinds,
    _check_rights_over_changed_members,
    _check_no_self_lockout,
    _check_administrator_remains,
    _check_member_ids,
    _check_removed_connections_unused,
    _check_removed_surfaces_unused,
    _check_removed_members_unused,
    _check_provenance_retained,
    _check_partition_keys_unchanged,
)
