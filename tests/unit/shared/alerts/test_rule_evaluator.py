"""Tests of storing evaluations: changed, disabled and deleted rules, and unpublished transitions."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.alerts.models import RuleStatus
from shared.alerts.scheduler import RETRY_SECONDS
from shared.catalog.items import ItemKind
from shared.catalog.ports import CatalogItem, ItemOrigin
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.telemetry.ports import ConnectionState
from tests.unit.shared.alerts.environment import COLD, FIRING, HOT, RESOLVED, AlertWorkspace
from tests.unit.shared.alerts.fakes import (
    AT,
    build_absence_rule,
    build_catalog,
    build_entry,
    build_rule,
)


def build_workspace_with_two_absence_rules() -> AlertWorkspace:
    """Return a workspace with two rules that read the same data: absence rules of the connections press and rig."""
    rules = [build_absence_rule(lookup=name, connections=[name]) for name in ("press", "rig")]
    press = build_catalog().connections["press"]
    connections = {
        name: replace(press, value=press.value.model_copy(update={"lookup": name})) for name in ("press", "rig")
    }
    return AlertWorkspace(build_catalog(*map(build_entry, rules), connections=connections))


async def test_a_rule_that_cannot_be_read_is_not_deleted(alert_workspace: AlertWorkspace) -> None:
    """The alerts of a rule that this version of the service cannot parse do not end, and its state remains."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    newer = CatalogItem(ItemKind.ALERT_RULE, "hot", {"newer": True}, ItemOrigin.API, AT, AT, "editor@t")
    readable = alert_workspace.catalog
    alert_workspace.catalog = build_catalog(version=2, items={(newer.kind, newer.key): newer})
    assert await alert_workspace.run_scheduler_after() == [FIRING]
    assert alert_workspace.get_status() is RuleStatus.FIRING
    alert_workspace.catalog = replace(readable, version=3)
    assert await alert_workspace.run_scheduler_after() == [FIRING]


@pytest.mark.parametrize("change", ["deleted", "disabled"])
async def test_the_end_of_a_rule_resolves_its_alerts(alert_workspace: AlertWorkspace, change: str) -> None:
    """If a rule is deleted or disabled, its alerts and its error are resolved at once."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    await alert_workspace.run_scheduler_after()
    disabled = build_entry(build_rule(enabled=False), AT, alert_workspace.time.now)
    alert_workspace.catalog = build_catalog(*([disabled] if change == "disabled" else []), version=2)
    assert (await alert_workspace.run_scheduler_after(1))[2:] == [RESOLVED, RESOLVED]
    await alert_workspace.run_scheduler_after(1)
    assert len(alert_workspace.outbox.events) == 4
    assert alert_workspace.store.states.keys() == ({"hot"} if change == "disabled" else set())
    assert [alert.state.value for alert in alert_workspace.store.alerts.values()] == ["resolved"]
    assert len(alert_workspace.queries.calls) == 2


OUTDATED_CATALOGS = {
    "missing": build_catalog(),
    "disabled": build_catalog(build_entry(build_rule(enabled=False), updated_at=AT - timedelta(hours=1))),
    "an earlier rule": build_catalog(build_entry(build_rule(), AT - timedelta(hours=1), AT - timedelta(hours=1))),
}


@pytest.mark.parametrize("outdated", OUTDATED_CATALOGS.values(), ids=OUTDATED_CATALOGS)
async def test_an_outdated_catalog_does_not_end_alerts(outdated: Catalog) -> None:
    """An instance with a catalog from before a rule was created or enabled does not end the rule's alerts."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_rule(every="PT1H")), version=2))
    workspace.queries.result = HOT
    assert await workspace.run_scheduler_after(0) == [FIRING]
    workspace.scheduler, workspace.outdated_catalog = workspace.start_scheduler(), outdated
    assert await workspace.run_scheduler_after(1) == [FIRING]
    assert workspace.get_status() is RuleStatus.FIRING


async def test_an_outdated_catalog_does_not_end_the_alert_of_an_enabled_connection() -> None:
    """An instance with a catalog from before a connection was enabled does not end the alert of the connection."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_absence_rule()), version=2))
    assert await workspace.run_scheduler_after(300) == [("alert.firing", "silent")]
    workspace.scheduler = workspace.start_scheduler()
    workspace.outdated_catalog = replace(workspace.catalog, version=1, connections={})
    assert await workspace.run_scheduler_after(1) == [("alert.firing", "silent")]


async def test_a_rule_that_was_created_again_has_new_alerts(alert_workspace: AlertWorkspace) -> None:
    """If a rule is deleted and created again between two runs, its old alert is resolved."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.catalog = build_catalog(
        build_entry(build_rule(), alert_workspace.time.now + timedelta(seconds=1)), version=2
    )
    assert sorted(await alert_workspace.run_scheduler_after(2)) == [FIRING, FIRING, RESOLVED]
    assert sorted(alert.state.value for alert in alert_workspace.store.alerts.values()) == ["firing", "resolved"]


async def test_a_failing_rule_that_was_created_again_has_no_old_alerts(alert_workspace: AlertWorkspace) -> None:
    """If a rule is deleted and created again, its old alert is resolved even if the new query fails."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    alert_workspace.catalog = build_catalog(
        build_entry(build_rule(), alert_workspace.time.now + timedelta(seconds=1)), version=2
    )
    assert sorted(await alert_workspace.run_scheduler_after(2)) == [FIRING, FIRING, RESOLVED]
    assert [alert.state.value for alert in alert_workspace.store.alerts.values()] == ["resolved"]
    assert (alert_workspace.get_status(), alert_workspace.store.states["hot"].firing) == (RuleStatus.ERROR, 0)


async def test_the_error_of_a_deleted_rule_ends_before_its_successor_fails(alert_workspace: AlertWorkspace) -> None:
    """If a failing rule is deleted and created again, its error is resolved, and the new rule reports its own error."""
    alert_workspace.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    await alert_workspace.run_scheduler_after(0)
    created_at = alert_workspace.time.now + timedelta(seconds=1)
    successor = build_entry(build_rule(name="New", surface="yard"), created_at, created_at)
    alert_workspace.catalog = build_catalog(successor, version=2)
    assert await alert_workspace.run_scheduler_after(2) == [FIRING, RESOLVED, FIRING]
    assert [(event.data["name"], event.surfaces) for event in alert_workspace.outbox.events.values()] == [
        ("Hot", frozenset({"hall"})),
        ("Hot", frozenset({"hall"})),
        ("New", frozenset({"yard"})),
    ]
    assert alert_workspace.get_status() is RuleStatus.ERROR


async def test_a_rule_that_was_created_again_does_not_wait_for_an_audit_event(alert_workspace: AlertWorkspace) -> None:
    """A rule is evaluated even if an acknowledgement of a deleted rule with its lookup cannot be audited."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    [alert_id] = alert_workspace.store.alerts
    alert_workspace.audit_log.failures = 10**6
    await alert_workspace.build_service().acknowledge(alert_id, "editor@t", None)
    created_at = alert_workspace.time.now + timedelta(seconds=1)
    alert_workspace.catalog = build_catalog(build_entry(build_rule(), created_at, created_at), version=2)
    for _ in range(3):
        await alert_workspace.run_scheduler_after()
    assert alert_workspace.outbox.list_transitions() == [FIRING, RESOLVED, FIRING]
    alert_workspace.audit_log.failures = 0
    await alert_workspace.run_scheduler_after()
    assert len(alert_workspace.audit_log.events) == 1


async def test_an_acknowledgement_that_cannot_be_audited_delays_no_rule() -> None:
    """While the audit log rejects an acknowledgement, all rules with the same data fire and resolve as usual."""
    workspace = build_workspace_with_two_absence_rules()
    workspace.connections.states = {
        "press": ConnectionState("CONNECTED", 1, AT - timedelta(hours=1)),
        "rig": ConnectionState("CONNECTED", 1, AT),
    }
    assert await workspace.run_scheduler_after(0) == [("alert.firing", "press")]
    [alert_id] = workspace.store.alerts
    workspace.audit_log.failures = 10**6
    await workspace.build_service().acknowledge(alert_id, "editor@t", None)
    assert await workspace.run_scheduler_after(360) == [("alert.firing", "press"), ("alert.firing", "rig")]
    workspace.connections.states = {"press": ConnectionState("CONNECTED", 2, workspace.time.now)}
    assert ("alert.resolved", "press") in await workspace.run_scheduler_after(60)
    assert workspace.store.states["press"].has_marks
    assert workspace.audit_log.events == {}
    workspace.audit_log.failures = 0
    await workspace.run_scheduler_after(RETRY_SECONDS)
    assert list(workspace.audit_log.events) == [f"acknowledge-{alert_id}"]
    assert not any(state.has_marks for state in workspace.store.states.values())
    assert not workspace.store.alerts[alert_id].marks


async def test_rules_with_the_same_data_wait_once_for_the_webhook_outbox() -> None:
    """While the webhook outbox does not respond, it is called once for all rules with the same data."""
    workspace = build_workspace_with_two_absence_rules()
    for seconds in (600, RETRY_SECONDS):
        workspace.outbox.failures = 10
        assert await workspace.run_scheduler_after(seconds) == []
        assert workspace.outbox.failures == 9
    workspace.outbox.failures = 0
    published = await workspace.run_scheduler_after(RETRY_SECONDS)
    assert published == [("alert.firing", "press"), ("alert.firing", "rig")]


async def test_rules_with_the_same_data_wait_once_for_the_audit_log() -> None:
    """While the audit log does not respond, it is called once for all rules with the same data."""
    workspace = build_workspace_with_two_absence_rules()
    await workspace.run_scheduler_after(600)
    workspace.audit_log.failures = 10
    for alert_id in workspace.store.alerts:
        await workspace.build_service().acknowledge(alert_id, "editor@t", None)
    workspace.audit_log.failures = 10
    await workspace.run_scheduler_after(RETRY_SECONDS)
    assert workspace.audit_log.failures == 9
    workspace.audit_log.failures = 0
    await workspace.run_scheduler_after(RETRY_SECONDS)
    assert len(workspace.audit_log.events) == 2


async def test_rules_are_evaluated_while_events_cannot_be_published(alert_workspace: AlertWorkspace) -> None:
    """While the outbox fails, rules are evaluated, and all transitions are published afterwards in their order."""
    alert_workspace.outbox.failures = 10**6
    for result in (HOT, COLD, HOT):
        alert_workspace.queries.result = result
        assert await alert_workspace.run_scheduler_after() == []
    assert alert_workspace.get_status() is RuleStatus.FIRING
    alert_workspace.outbox.failures = 0
    assert sorted(await alert_workspace.run_scheduler_after()) == [FIRING, FIRING, RESOLVED]
    assert len(alert_workspace.queries.calls) == 4


async def test_no_error_of_a_rule_is_lost_while_events_cannot_be_published(alert_workspace: AlertWorkspace) -> None:
    """If a rule fails, recovers and fails again while the outbox fails, both errors are reported afterwards."""
    alert_workspace.outbox.failures = 10**6
    error = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    for result in (error, COLD, error):
        alert_workspace.queries.result = result
        await alert_workspace.run_scheduler_after()
    alert_workspace.outbox.failures = 0
    assert await alert_workspace.run_scheduler_after(RETRY_SECONDS) == [FIRING, RESOLVED, FIRING]


async def test_an_acknowledgement_during_an_evaluation_is_audited(alert_workspace: AlertWorkspace) -> None:
    """If appending the event of an acknowledgement fails during an evaluation, the evaluation appends it afterwards."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    [alert_id] = alert_workspace.store.alerts

    async def acknowledge_alert() -> None:
        alert_workspace.audit_log.failures = 1
        await alert_workspace.build_service().acknowledge(alert_id, "editor@t", None)
        assert alert_workspace.audit_log.events == {}

    alert_workspace.queries.gate = acknowledge_alert
    await alert_workspace.run_scheduler_after()
    assert len(alert_workspace.audit_log.events) == 1
    assert alert_workspace.store.alerts[alert_id].acknowledged_by == "editor@t"


async def test_a_changed_rule_is_evaluated_at_once(alert_workspace: AlertWorkspace) -> None:
    """A rule that was changed by a PUT is evaluated in the next run, before its due time."""
    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    raised = build_rule(condition={"column": "value", "operator": "gt", "value": 50})
    alert_workspace.catalog = build_catalog(build_entry(raised, AT, AT + timedelta(seconds=1)), version=2)
    assert await alert_workspace.run_scheduler_after(1) == [FIRING, RESOLVED]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"condition": {"column": "value", "operator": "gt", "value": 8}}, "pending"),
        ({"timeRange": "PT5M"}, "pending"),
        ({"name": "Hotter", "every": "PT30S"}, "firing"),
    ],
)
async def test_a_pending_alert_starts_again_after_an_edit_of_its_condition(changes: dict[str, Any], state: str) -> None:
    """If data or condition of a rule are edited, also before a failure, the hold time of its alert starts again."""
    workspace = AlertWorkspace(build_catalog(build_entry(build_rule(**{"for": "PT2M"}))))
    workspace.queries.result = HOT
    await workspace.run_scheduler_after(0)
    edited = build_entry(build_rule(**{"for": "PT2M", **changes}), AT, AT + timedelta(seconds=1))
    workspace.catalog = build_catalog(edited, version=2)
    workspace.queries.result = WorkspaceError(Kind.TIMEOUT, "QUERY_TIMEOUT", "x")
    await workspace.run_scheduler_after(60)
    workspace.queries.result = HOT
    workspace.time.advance(60)
    trial = await workspace.build_service().run_trial_evaluation(edited)
    assert [group.would_fire for group in trial.alerts] == [state == "firing"]
    for seconds, expected in ((0, state), (120, "firing")):
        await workspace.run_scheduler_after(seconds)
        assert [alert.state.value for alert in workspace.store.alerts.values()] == [expected]


@pytest.mark.parametrize("change", ["edited", "disabled", "deleted"])
async def test_a_rule_that_changes_during_its_evaluation_does_not_fire(
    alert_workspace: AlertWorkspace, change: str
) -> None:
    """If a rule is edited, disabled or deleted while its query runs, the result of the query is not stored."""

    async def change_rule() -> None:
        alert_workspace.queries.gate = None
        change_or_delete_rule(alert_workspace, change)

    alert_workspace.queries.result = HOT
    alert_workspace.queries.gate = change_rule
    assert await alert_workspace.run_scheduler_after(0) == []
    assert len(alert_workspace.queries.calls) == (2 if change == "edited" else 1)


@pytest.mark.parametrize("change", ["disabled", "deleted"])
async def test_an_alert_that_ends_with_its_rule_during_an_evaluation_does_not_fire_again(
    alert_workspace: AlertWorkspace, change: str
) -> None:
    """If a rule is disabled or deleted, and its alert resolved, while its query runs, no new alert fires."""

    async def end_rule() -> None:
        change_or_delete_rule(alert_workspace, change)
        await alert_workspace.start_scheduler().evaluate_due_rules()
        assert alert_workspace.outbox.list_transitions() == [FIRING, RESOLVED]

    alert_workspace.queries.result = HOT
    await alert_workspace.run_scheduler_after(0)
    alert_workspace.queries.gate = end_rule
    assert await alert_workspace.run_scheduler_after() == [FIRING, RESOLVED]
    assert alert_workspace.store.states.keys() == ({"hot"} if change == "disabled" else set())


def change_or_delete_rule(workspace: AlertWorkspace, change: str) -> None:
    """Delete the rule, disable it, or raise its limit above the value that the query returns."""
    if change == "deleted":
        workspace.catalog = build_catalog(version=2)
        return
    changes: dict[str, Any] = {
        "disabled": {"enabled": False},
        "edited": {"condition": {"column": "value", "operator": "gt", "value": 50}},
    }
    changed = build_entry(build_rule(**changes[change]), AT, AT + timedelta(seconds=1))
    workspace.catalog = build_catalog(changed, version=2)


async def test_a_disabled_connection_resolves_its_alert_at_once() -> None:
    """If a connection is disabled, its alert is resolved at once, before the rule's due time."""
    entry = build_entry(build_absence_rule(every="P1D"))
    workspace = AlertWorkspace(build_catalog(entry))
    assert await workspace.run_scheduler_after(600) == [("alert.firing", "silent")]
    workspace.catalog = build_catalog(entry, version=2, connections={})
    assert (await workspace.run_scheduler_after(1))[1:] == [("alert.resolved", "silent")]


async def test_unpublished_transitions_are_published_later(alert_workspace: AlertWorkspace) -> None:
    """If the outbox fails after a transition was stored, a later run publishes the transition once."""
    alert_workspace.queries.result = HOT
    alert_workspace.outbox.failures = 1
    assert await alert_workspace.run_scheduler_after(0) == []
    assert alert_workspace.get_status() is RuleStatus.FIRING
    alert_workspace.scheduler = alert_workspace.start_scheduler()
    assert await alert_workspace.run_scheduler_after(1) == [FIRING]
    assert await alert_workspace.run_scheduler_after(1) == [FIRING]
    assert len(alert_workspace.queries.calls) == 1
