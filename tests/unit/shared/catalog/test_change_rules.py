"""Tests of the rules for catalog changes through the API."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.catalog.change_rules import KIND_RIGHTS, Caller, check_changes
from shared.catalog.diff import ItemChange
from shared.catalog.items import MODELS, ItemKind, to_definition
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.errors import MAX_LISTED, Kind, WorkspaceError

AT = datetime(2026, 1, 1, tzinfo=UTC)
ADMIN = Caller("admin@p", frozenset(AccessRight))
DEPUTY = Caller("deputy@p", frozenset(AccessRight))
TEAM_MANAGER = Caller("manager@p", ROLE_RIGHTS[Role.EDITOR] | {AccessRight.TEAM_MANAGE})


def build_item(kind: ItemKind, key: str, /, **fields: Any) -> CatalogItem:
    """Return an item of a kind, with the defaults of its model."""
    definition = to_definition(MODELS[kind].model_validate(fields))
    return CatalogItem(kind, key, definition, ItemOrigin.DECLARED, AT, AT, "apply")


def build_member(key: str, role: str = "Viewer", **fields: Any) -> CatalogItem:
    """Return a stored member."""
    return build_item(ItemKind.MEMBER, key, id=key, name=key, role=role, **fields)


APPROVAL = {"approvedBy": "approver@p", "approvedAt": AT}
STORED = StoredCatalog(
    3,
    (
        build_item(ItemKind.SETTINGS, "-", tier="pro", policies={"provenance": {}}),
        build_member("admin@p", "Admin"),
        build_member("gone@p", "Admin", enabled=False),
        build_member("robot", "Admin", service=True),
        build_member("manager@p", "Editor", rights=["Workspace.Team.Manage"]),
        build_member("deputy@p", "Editor", rights=list(AccessRight)),
        build_member("approver@p", "Editor", rights=["Workspace.WarmQuery.Approve"]),
        build_member("viewer@p", oid="ABC"),
        build_item(ItemKind.MEMBER_STATE, "former@p", retiredAt=AT),
        build_item(ItemKind.CONNECTION, "rig", lookup="rig", name="Rig", type="CLOUD_EVENT_HUB"),
        build_item(ItemKind.CONNECTION, "spare", lookup="spare", name="Spare", type="CLOUD_EVENT_HUB"),
        build_item(ItemKind.SURFACE, "hall", lookup="hall", name="Hall", connections=["rig"]),
        build_item(ItemKind.SURFACE, "yard", lookup="yard", name="Yard", connections=["rig"]),
        build_item(ItemKind.CONTAINER, "orders/lines", name="lines", partitionKeyPath="/line", dataClass="operational"),
        build_item(
            ItemKind.WARM_QUERY, "q1", lookup="q1", name="First", surface="hall", kql="Telemetry", approval=APPROVAL
        ),
        build_item(ItemKind.CONNECTION, "watched", lookup="watched", name="Watched", type="CLOUD_EVENT_HUB"),
        build_item(ItemKind.SURFACE, "alerts", lookup="alerts", name="Alerts"),
        build_item(
            ItemKind.ALERT_RULE,
            "silent",
            lookup="silent",
            name="Silent",
            severity="info",
            surface="alerts",
            kind="absence",
            every="PT1M",
            connections=["watched"],
            after="PT5M",
        ),
    ),
)


def find_definition(kind: ItemKind, key: str) -> dict[str, Any]:
    """Return the stored definition of an item."""
    return next(item.definition for item in STORED.items if (item.kind, item.key) == (kind, key))


def build_change(kind: ItemKind, key: str, **fields: Any) -> ItemChange:
    """Return a change of some fields of a stored item."""
    before = find_definition(kind, key)
    return ItemChange(kind, key, before, {**before, **fields})


def build_addition(item: CatalogItem) -> ItemChange:
    """Return the addition of an item."""
    return ItemChange(item.kind, item.key, None, item.definition)


def build_removal(kind: ItemKind, key: str) -> ItemChange:
    """Return the removal of a stored item."""
    return ItemChange(kind, key, find_definition(kind, key), None)


def get_error(changes: list[ItemChange], caller: Caller = ADMIN) -> WorkspaceError:
    """Return the error that rejects a set of changes."""
    with pytest.raises(WorkspaceError) as raised:
        check_changes(STORED, changes, caller)
    return raised.value


MEMBER, CONNECTION, SURFACE = ItemKind.MEMBER, ItemKind.CONNECTION, ItemKind.SURFACE
SETTINGS, QUERY, CONTAINER = ItemKind.SETTINGS, ItemKind.WARM_QUERY, ItemKind.CONTAINER
RULE = ItemKind.ALERT_RULE
PERMITTED: dict[str, tuple[Caller, list[ItemChange]]] = {
    "no change": (ADMIN, []),
    "add a member": (ADMIN, [build_addition(build_member("new@p", "Admin"))]),
    "a caller without the role grants its own rights": (
        TEAM_MANAGER,
        [build_addition(build_member("new@p", "Editor"))],
    ),
    "rename oneself": (TEAM_MANAGER, [build_change(MEMBER, "manager@p", name="Boss")]),
    "remove a disabled administrator": (ADMIN, [build_removal(MEMBER, "gone@p")]),
    "replace the administrator": (
        DEPUTY,
        [build_change(MEMBER, "viewer@p", role="Admin"), build_change(MEMBER, "admin@p", role="Viewer")],
    ),
    "disable an approver": (ADMIN, [build_change(MEMBER, "approver@p", enabled=False)]),
    "remove an approver with the query": (ADMIN, [build_removal(MEMBER, "approver@p"), build_removal(QUERY, "q1")]),
    "remove a connection that no surface has": (ADMIN, [build_removal(CONNECTION, "spare")]),
    "remove a connection from all surfaces": (
        ADMIN,
        [
            build_change(SURFACE, "hall", connections=[]),
            build_change(SURFACE, "yard", connections=["spare"]),
            build_removal(CONNECTION, "rig"),
        ],
    ),
    "add a connection with its surface": (
        ADMIN,
        [
            build_addition(build_item(SURFACE, "new", lookup="new", name="New", connections=["fresh"])),
            build_addition(build_item(CONNECTION, "fresh", lookup="fresh", name="Fresh", type="CLOUD_IOT_HUB")),
        ],
    ),
    "remove a surface without queries": (ADMIN, [build_removal(SURFACE, "yard")]),
    "change a policy": (ADMIN, [build_change(SETTINGS, "-", policies={"provenance": {"requireReasonText": True}})]),
    "keep one's object id": (ADMIN, [build_change(MEMBER, "viewer@p", name="Same oid")]),
}
REJECTED: dict[str, tuple[str, Caller, list[ItemChange]]] = {
    "grant a role with more rights": ("RIGHT_NOT_HELD", TEAM_MANAGER, [build_addition(build_member("new@p", "Admin"))]),
    "grant a single right": (
        "RIGHT_NOT_HELD",
        TEAM_MANAGER,
        [build_change(MEMBER, "viewer@p", rights=["Workspace.Keys.Manage"])],
    ),
    "edit a member with more rights": ("RIGHT_NOT_HELD", TEAM_MANAGER, [build_change(MEMBER, "admin@p", name="Other")]),
    "demote a member with more rights": (
        "RIGHT_NOT_HELD",
        TEAM_MANAGER,
        [build_change(MEMBER, "admin@p", role="Viewer")],
    ),
    "remove a member with more rights": ("RIGHT_NOT_HELD", TEAM_MANAGER, [build_removal(MEMBER, "approver@p")]),
    "edit a disabled member with more rights": (
        "RIGHT_NOT_HELD",
        TEAM_MANAGER,
        [build_change(MEMBER, "gone@p", name="G")],
    ),
    "create a disabled member with more rights": (
        "RIGHT_NOT_HELD",
        TEAM_MANAGER,
        [build_addition(build_member("new@p", "Admin", enabled=False))],
    ),
    "use a token with fewer rights than one has": (
        "RIGHT_NOT_HELD",
        Caller("admin@p", frozenset({AccessRight.TEAM_MANAGE})),
        [build_change(MEMBER, "viewer@p", name="V")],
    ),
    "demote the last administrator": (
        "LAST_ADMINISTRATOR",
        DEPUTY,
        [build_change(MEMBER, "admin@p", role="Editor")],
    ),
    "disable the last administrator": ("LAST_ADMINISTRATOR", DEPUTY, [build_change(MEMBER, "admin@p", enabled=False)]),
    "turn the last administrator into a service": (
        "LAST_ADMINISTRATOR",
        ADMIN,
        [build_change(MEMBER, "admin@p", service=True)],
    ),
    "demote the last administrator, who keeps the right": (
        "LAST_ADMINISTRATOR",
        ADMIN,
        [build_change(MEMBER, "admin@p", role="Editor", rights=["Workspace.Team.Manage"])],
    ),
    "drop one's own right": ("SELF_LOCKOUT", TEAM_MANAGER, [build_change(MEMBER, "manager@p", rights=[])]),
    "disable oneself": ("SELF_LOCKOUT", TEAM_MANAGER, [build_change(MEMBER, "manager@p", enabled=False)]),
    "remove oneself": ("SELF_LOCKOUT", TEAM_MANAGER, [build_removal(MEMBER, "manager@p")]),
    "disable oneself as the last administrator": (
        "SELF_LOCKOUT",
        ADMIN,
        [build_change(MEMBER, "admin@p", enabled=False)],
    ),
    "use a retired id": ("MEMBER_ID_RETIRED", ADMIN, [build_addition(build_member("former@p"))]),
    "use a look-alike of a retired id": ("MEMBER_ID_RETIRED", ADMIN, [build_addition(build_member("Former@P"))]),
    "use a look-alike of another id": ("MEMBER_ID_TAKEN", ADMIN, [build_addition(build_member("Viewer@p"))]),
    "use the object id of another": ("MEMBER_OID_TAKEN", ADMIN, [build_change(MEMBER, "manager@p", oid="abc")]),
    "remove a connection of a surface": ("CONNECTION_IN_USE", ADMIN, [build_removal(CONNECTION, "rig")]),
    "remove a surface with queries": ("SURFACE_IN_USE", ADMIN, [build_removal(SURFACE, "hall")]),
    "remove a connection that a rule watches": ("CONNECTION_IN_USE", ADMIN, [build_removal(CONNECTION, "watched")]),
    "remove a surface with alert rules": ("SURFACE_IN_USE", ADMIN, [build_removal(SURFACE, "alerts")]),
    "remove an approver": ("MEMBER_IN_USE", ADMIN, [build_removal(MEMBER, "approver@p")]),
    "change a partition key path": (
        "PARTITION_KEY_IMMUTABLE",
        ADMIN,
        [build_change(CONTAINER, "orders/lines", partitionKeyPath="/id")],
    ),
    "switch provenance off": (
        "PROVENANCE_REQUIRED",
        ADMIN,
        [build_change(SETTINGS, "-", policies={"provenance": None})],
    ),
}


@pytest.mark.parametrize("name", PERMITTED)
def test_changes_that_break_no_rule_are_accepted(name: str) -> None:
    """Changes that break no rule are accepted."""
    caller, changes = PERMITTED[name]
    check_changes(STORED, changes, caller)


@pytest.mark.parametrize("name", REJECTED)
def test_each_broken_rule_has_an_error_code(name: str) -> None:
    """Each broken rule has its own error code; a missing right is FORBIDDEN, all other codes are conflicts."""
    code, caller, changes = REJECTED[name]
    error = get_error(changes, caller)
    assert (error.code, error.kind) == (code, Kind.FORBIDDEN if code == "RIGHT_NOT_HELD" else Kind.CONFLICT)


def test_the_error_names_each_right_that_the_caller_lacks() -> None:
    """The error names each right that the caller lacks."""
    error = get_error([build_change(MEMBER, "viewer@p", rights=["Workspace.Keys.Manage"])], TEAM_MANAGER)
    assert error.members == {"accessRights": ["Workspace.Keys.Manage"]}
    assert "Workspace.Keys.Manage" in error.detail


@pytest.mark.parametrize(
    ("kind", "key", "used_by"),
    [
        (CONNECTION, "rig", ["hall", "yard"]),
        (SURFACE, "hall", ["q1"]),
        (MEMBER, "approver@p", ["q1"]),
    ],
)
def test_items_that_use_a_removed_item_are_named(kind: ItemKind, key: str, used_by: list[str]) -> None:
    """If an item cannot be removed because it is in use, the error names the items that use it."""
    assert get_error([build_removal(kind, key)]).members == {"usedBy": used_by}


@pytest.mark.parametrize(
    ("kind", "key", "users", "text"),
    [
        (CONNECTION, "watched", [], "used by alert rules: silent."),
        (CONNECTION, "watched", [build_change(SURFACE, "hall", connections=["watched"])], "surfaces: hall and alert"),
        (SURFACE, "alerts", [build_change(QUERY, "q1", surface="alerts")], "warm queries: q1 and alert rules: silent."),
    ],
)
def test_users_of_all_kinds_are_named_together(kind: ItemKind, key: str, users: list[ItemChange], text: str) -> None:
    """The error about a used connection or surface names its users of all kinds, and which of them are alert rules."""
    error = get_error([*users, build_removal(kind, key)])
    assert error.members == {"usedBy": [*(user.key for user in users), "silent"], "alertRules": ["silent"]}
    assert text in error.detail


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (build_change(SURFACE, "yard", connections=["rig", "nowhere"]), "connections[1]"),
        (build_change(QUERY, "q1", surface="nowhere"), "surface"),
        (build_change(RULE, "silent", surface="nowhere"), "surface"),
        (build_change(RULE, "silent", query="nothing"), "query"),
        (build_change(RULE, "silent", connections=["watched", "nowhere"]), "connections[1]"),
        (build_change(SETTINGS, "-", tier="enterprise"), "tier"),
        (build_change(SETTINGS, "-", limits={"requestsPerMinute": 1, "concurrent": 1}), "limits"),
    ],
)
def test_invalid_references_and_settings_are_errors_of_the_field(changed: ItemChange, field: str) -> None:
    """Unknown references and changes of read-only settings are reported at their fields, before all other errors."""
    for changes in ([changed], [changed, build_removal(CONNECTION, "rig")]):
        error = get_error(changes)
        assert error.kind is Kind.INVALID
        assert [listed["field"] for listed in error.members["errors"]] == [field]  # type: ignore[attr-defined]


def test_missing_rights_come_before_conflicts() -> None:
    """A missing right is reported before a conflict, so that the caller learns nothing about other items."""
    caller = Caller("admin@p", frozenset({AccessRight.CATALOG_MANAGE, AccessRight.TEAM_MANAGE}))
    error = get_error([build_removal(CONNECTION, "rig"), build_change(MEMBER, "admin@p", role="Viewer")], caller)
    assert error.code == "RIGHT_NOT_HELD"


@pytest.mark.parametrize("kind", [kind for kind in ItemKind if kind is not ItemKind.MEMBER_STATE])
def test_changes_of_each_item_kind_require_its_right(kind: ItemKind) -> None:
    """Changing an item requires the right for its kind; the error names this right."""
    right = KIND_RIGHTS[kind]
    caller = Caller("admin@p", frozenset(AccessRight) - {right})
    unchanged = {"connections": [], "surface": "hall", "role": "Viewer", "enabled": True, "policies": {}}
    error = get_error([ItemChange(kind, "any", None, unchanged)], caller)
    assert (error.code, error.members) == ("ACCESS_RIGHT_MISSING", {"accessRight": right, "accessRights": [right]})


@pytest.mark.parametrize(
    ("user", "code"),
    [("viewer@p", "ACCESS_RIGHT_MISSING"), ("gone@p", "UNAUTHENTICATED"), ("nobody@p", "UNAUTHENTICATED")],
)
def test_rights_lost_since_the_sign_in_do_not_count(user: str, code: str) -> None:
    """If the caller was demoted, disabled or removed after signing in, the earlier rights no longer count."""
    caller = Caller(user, frozenset(AccessRight))
    assert get_error([build_change(MEMBER, "viewer@p", name="V")], caller).code == code


def test_an_earlier_reference_to_an_unknown_item_blocks_no_changes() -> None:
    """If an unchanged item has a reference to an unknown item, other items can still be changed."""
    dangling = build_item(SURFACE, "old", lookup="old", name="Old", connections=["lost"])
    stored = StoredCatalog(4, (*STORED.items, dangling))
    check_changes(stored, [build_change(MEMBER, "viewer@p", name="V")], ADMIN)


def test_an_alert_rule_may_keep_a_query_that_was_deleted() -> None:
    """A rule whose query was deleted can be changed, unless the change concerns how the rule uses the query."""
    fields = {"lookup": "old", "name": "Old", "severity": "info", "surface": "alerts", "kind": "threshold"}
    rule = build_item(RULE, "old", **fields, every="PT1M", query="deleted", condition={"rows": "any"})
    stored = StoredCatalog(4, (*STORED.items, rule))
    disabled = {**rule.definition, "enabled": False}
    check_changes(stored, [ItemChange(RULE, "old", rule.definition, disabled)], ADMIN)
    changed = ItemChange(RULE, "old", rule.definition, {**disabled, "condition": {"rows": "none"}})
    for catalog, change in ((stored, changed), (STORED, build_addition(rule))):
        with pytest.raises(WorkspaceError, match="query: unknown warm query: deleted"):
            check_changes(catalog, [change], ADMIN)


def test_a_new_alert_rule_cannot_use_a_query_that_the_same_changes_remove() -> None:
    """A change that adds a rule and removes the rule's query is rejected, because the rule could not be evaluated."""
    fields = {"lookup": "new", "name": "New", "severity": "info", "surface": "alerts", "kind": "threshold"}
    rule = build_item(RULE, "new", **fields, every="PT1M", query="q1", condition={"rows": "any"})
    error = get_error([build_addition(rule), build_removal(ItemKind.WARM_QUERY, "q1")])
    assert error.detail == "query: unknown warm query: q1"


def test_the_member_that_already_has_an_object_id_is_named() -> None:
    """If the Entra object id of a changed member already belongs to another member, the error names the latter."""
    _, caller, changes = REJECTED["use the object id of another"]
    rule = r"must be unique; abc is already the object id of .*; remove it there first or use another one\.$"
    with pytest.raises(WorkspaceError, match=f"^Field `oid` of manager@p {rule}"):
        check_changes(STORED, changes, caller)


def test_at_most_a_thousand_unknown_references_are_listed() -> None:
    """If a surface names thousands of unknown connections, the first 1,000 are listed."""
    names = [f"c{number}" for number in range(5_000)]
    new = build_item(SURFACE, "new", lookup="new", name="New", connections=names)
    with pytest.raises(WorkspaceError) as raised:
        check_changes(STORED, [build_addition(new)], ADMIN)
    errors: Any = raised.value.members["errors"]
    assert [each["field"] for each in errors] == [*(f"connections[{number}]" for number in range(MAX_LISTED)), "..."]
