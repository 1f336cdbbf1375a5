"""Tests that every store of alerts meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.alerts.models import Alert, AlertState, Mark, RuleState
from shared.alerts.ports import AlertFilter, AlertPlace, AlertStore, RuleRecord
from shared.backends.azure.cosmos_alerts import CosmosAlertStore
from shared.backends.embedded.alerts import SCHEMA, SqliteAlertStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.alert_rule_models import Severity
from shared.timestamps import format_rfc3339
from tests.adapters.cosmos import KINDS, open_accounts

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVERYTHING = AlertFilter()
type Opener = Callable[[], AlertStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        account = None if request.param == "sqlite" else await stack.enter_async_context(open_accounts(request.param))

        def open_another() -> AlertStore:
            if account:
                return CosmosAlertStore(account())
            database = SqliteDatabase(tmp_path / "alerts.sqlite", SCHEMA)
            stack.push_async_callback(database.close)
            return SqliteAlertStore(database)

        yield open_another


@pytest.fixture
def store(open_store: Opener) -> AlertStore:
    """Provide an empty store; each test runs with each kind of store."""
    return open_store()


def build_state(rule: str = "hot", **changes: Any) -> RuleState:
    """Return a stored state of an alert rule."""
    return RuleState(rule=rule, revision="r1", evaluated_at=AT, due_at=AT + SECOND).model_copy(update=changes)


def build_alert(number: int = 1, rule: str = "hot", **changes: Any) -> Alert:
    """Return a firing alert that began this number of seconds after the start."""
    alert = Alert(
        id=f"{number:032x}",
        rule=rule,
        name="Hot",
        severity=Severity.WARNING,
        surface="hall",
        runbook_url=None,
        labels={"Device": f"d{number}", "Line": None},
        state=AlertState.FIRING,
        value=1.5,
        started_at=AT + number * SECOND,
        fired_at=AT + number * SECOND,
    )
    return alert.model_copy(update=changes)


async def save_change(
    store: AlertStore, record: RuleRecord, state: RuleState | None, *puts: Alert, deletes: tuple[str, ...] = ()
) -> RuleRecord:
    """Save a change that must succeed, and return the stored record."""
    assert await store.try_save_rule_changes_and_return_token(record, state, puts, deletes) is not None
    return await store.load_rule_record(record.rule)


async def test_a_rule_without_a_record_has_no_state_and_no_alerts(store: AlertStore) -> None:
    """A rule that was never evaluated has no state, no alerts and no change token."""
    assert await store.load_rule_record("hot") == RuleRecord("hot")
    assert await store.list_rule_states() == []
    assert await store.find_alert("1" * 32) is None
    assert await store.find_alert("state") is None
    assert await store.list_alerts(EVERYTHING, None, 10) == []


async def test_state_and_alerts_are_stored_together(open_store: Opener) -> None:
    """State and open alerts that one instance saves are loaded by another instance without changes."""
    alert = build_alert(marks=(Mark.FIRING,), value=2**60, connection="press", comment="Überdruck")
    stored = await save_change(open_store(), RuleRecord("hot"), build_state(firing=1, has_marks=True), alert)
    assert stored.state == build_state(firing=1, has_marks=True)
    assert stored.alerts == (alert,)
    assert stored.token
    other = open_store()
    assert await other.find_alert(alert.id) == alert
    assert await other.list_rule_states() == [build_state(firing=1, has_marks=True)]


async def test_resolved_alerts_stay_in_the_record_until_notifications_are_sent(store: AlertStore) -> None:
    """A resolved alert stays in the rule's record until its notifications are sent.

    After that it is only in the history.
    """
    resolved = build_alert(state=AlertState.RESOLVED, resolved_at=AT + SECOND, marks=(Mark.RESOLVED,))
    record = await save_change(store, RuleRecord("hot"), build_state(), resolved)
    assert record.alerts == (resolved,)
    done = resolved.copy_without_marks(Mark.RESOLVED)
    record = await save_change(store, record, build_state(), done)
    assert record.alerts == ()
    assert await store.list_alerts(EVERYTHING, None, 10) == [done]


async def test_a_change_based_on_an_outdated_record_is_rejected(open_store: Opener) -> None:
    """If two changes are based on the same record, the later change is rejected and stores nothing."""
    first, second = open_store(), open_store()
    record = await save_change(first, RuleRecord("hot"), build_state())
    tokens = await asyncio.gather(
        first.try_save_rule_changes_and_return_token(record, build_state(revision="a"), [build_alert(1)]),
        second.try_save_rule_changes_and_return_token(record, build_state(revision="b"), [build_alert(2)]),
    )
    assert sorted(token is None for token in tokens) == [False, True]
    winner = 1 if tokens[0] is not None else 2
    stored = await first.load_rule_record("hot")
    assert stored.alerts == (build_alert(winner),)
    assert stored.state == build_state(revision="ab"[winner - 1])
    assert stored.token == tokens[winner - 1]


async def test_only_one_of_two_initial_changes_of_a_rule_is_stored(store: AlertStore) -> None:
    """If two changes are the first of a rule, the second is rejected."""
    assert await store.try_save_rule_changes_and_return_token(RuleRecord("hot"), build_state(), []) is not None
    assert (
        await store.try_save_rule_changes_and_return_token(
            RuleRecord("hot"), build_state(revision="r2"), [build_alert()]
        )
        is None
    )
    assert (await store.load_rule_record("hot")).alerts == ()


async def test_a_change_replaces_and_deletes_alerts_by_id(store: AlertStore) -> None:
    """A change replaces and deletes alerts of its rule by id; alerts of other rules stay unchanged."""
    await save_change(store, RuleRecord("cold"), build_state("cold"), build_alert(9, "cold"))
    record = await save_change(store, RuleRecord("hot"), build_state(), build_alert(1), build_alert(2))
    changed = build_alert(1, value=7)
    record = await save_change(store, record, build_state(firing=1), changed, deletes=(build_alert(2).id,))
    assert record.alerts == (changed,)
    assert await store.find_alert(build_alert(2).id) is None
    assert (await store.load_rule_record("cold")).alerts == (build_alert(9, "cold"),)


async def test_changes_based_on_a_removed_state_are_rejected(store: AlertStore) -> None:
    """After the state of an alert rule is removed, changes that are based on this state are rejected."""
    record = await save_change(store, RuleRecord("hot"), build_state(), build_alert(1))
    ended = build_alert(1, state=AlertState.RESOLVED, resolved_at=AT)
    assert (await save_change(store, record, None, ended)) == RuleRecord("hot")
    assert await store.list_rule_states() == []
    again = await save_change(store, RuleRecord("hot"), build_state(revision="r2"))
    assert await store.try_save_rule_changes_and_return_token(record, None, []) is None
    assert await store.try_save_rule_changes_and_return_token(record, build_state(), []) is None
    assert (await store.load_rule_record("hot")) == again


async def test_a_change_can_contain_more_alerts_than_a_transaction(store: AlertStore) -> None:
    """A change can contain more alerts than a transaction of the store can hold."""
    alerts = [build_alert(number) for number in range(250)]
    record = await save_change(store, RuleRecord("hot"), build_state(firing=250), *alerts)
    assert record.alerts == tuple(alerts)
    ids = tuple(alert.id for alert in alerts[:120])
    record = await save_change(store, record, build_state(firing=130), *alerts[120:], deletes=ids)
    assert record.alerts == tuple(alerts[120:])
    assert record.state == build_state(firing=130)


async def test_alerts_are_listed_newest_first_and_in_pages(store: AlertStore) -> None:
    """All pages together contain each alert once, sorted by start and then id."""
    alerts = [build_alert(number, started_at=AT + (number // 2) * SECOND) for number in range(7)]
    await save_change(store, RuleRecord("hot"), build_state(), *alerts[:4])
    moved = [alert.copy_with_changes(rule="cold") for alert in alerts[4:]]
    await save_change(store, RuleRecord("cold"), build_state("cold"), *moved)
    listed: list[Alert] = []
    place: AlertPlace | None = None
    while page := await store.list_alerts(EVERYTHING, place, 3):
        listed += page
        place = AlertPlace(format_rfc3339(page[-1].started_at), page[-1].id)
    assert [alert.id for alert in listed] == [alert.id for alert in reversed(alerts)]


@pytest.mark.parametrize(
    ("alert_filter", "numbers"),
    [
        (AlertFilter(state=AlertState.FIRING), [3, 1]),
        (AlertFilter(state=AlertState.RESOLVED, severity=Severity.CRITICAL), [2]),
        (AlertFilter(surface="yard"), [3]),
        (AlertFilter(surface="nowhere"), []),
        (AlertFilter(AlertState.FIRING, Severity.WARNING, "hall"), [1]),
    ],
)
async def test_alert_lists_are_filtered(store: AlertStore, alert_filter: AlertFilter, numbers: list[int]) -> None:
    """A filtered list contains the alerts that meet every condition of the filter."""
    alerts = (
        build_alert(1),
        build_alert(2, state=AlertState.RESOLVED, resolved_at=AT, severity=Severity.CRITICAL),
        build_alert(3, surface="yard"),
    )
    await save_change(store, RuleRecord("hot"), build_state(), *alerts)
    found = await store.list_alerts(alert_filter, None, 10)
    assert [alert.id for alert in found] == [build_alert(number).id for number in numbers]


async def test_old_resolved_alerts_are_deleted(tmp_path: Path) -> None:
    """The SQLite store deletes old resolved alerts without pending work; the Cosmos DB store makes them expire."""
    database = SqliteDatabase(tmp_path / "alerts.sqlite", SCHEMA)
    store = SqliteAlertStore(database)
    resolved = [build_alert(n, state=AlertState.RESOLVED, resolved_at=AT + n * SECOND) for n in range(3)]
    marked = resolved[0].copy_with_changes(id="f" * 32, marks=(Mark.RESOLVED,))
    await save_change(store, RuleRecord("hot"), build_state(), *resolved, marked)
    assert await store.delete_and_count_resolved_alerts(AT + 2 * SECOND) == 2
    assert {alert.id for alert in await store.list_alerts(EVERYTHING, None, 10)} == {resolved[2].id, marked.id}
    await database.close()
