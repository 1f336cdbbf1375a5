"""Tests of alerts in Cosmos DB that do not apply to other stores."""

import itertools
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

import pytest

from emulators.cosmos import CosmosServer
from emulators.cosmos.faults import FaultKind, InjectedFault
from emulators.cosmos.wire import CosmosRequest
from shared.alerts.models import Alert, AlertState, Mark, RuleState
from shared.alerts.ports import RuleRecord
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_alerts import CosmosAlertStore
from shared.catalog.alert_rule_models import Severity
from shared.errors import WorkspaceError
from tests.unit.shared.backends.azure.cosmos_stores import DATABASE, create_database

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _build_alert(number: int) -> Alert:
    return Alert(
        id=f"{number:032x}",
        rule="hot",
        name="Hot",
        severity=Severity.WARNING,
        surface="hall",
        runbook_url=None,
        labels={"device": str(number)},
        state=AlertState.FIRING,
        value=1.5,
        started_at=AT,
        fired_at=AT,
        marks=(Mark.FIRING,),
    )


@pytest.mark.parametrize("has_state", [False, True])
async def test_a_change_that_is_stored_in_part_leaves_the_rule_due_and_not_idle(*, has_state: bool) -> None:
    """If only the first of several transactions is stored, the rule is due, and its alerts can be published and end."""
    due_at = AT + timedelta(minutes=1)
    state = RuleState(rule="hot", revision="r", evaluated_at=AT, due_at=due_at, firing=150, has_marks=True)
    batches = itertools.count()

    def is_second_transaction(request: CosmosRequest) -> bool:
        return request.operation == "batch" and next(batches) == 1

    async with CosmosServer() as server:
        await create_database(server)
        account = CosmosAccount(server.endpoint, DATABASE, key=server.key)
        store = CosmosAlertStore(account)
        if has_state:
            before = RuleState(rule="hot", revision="r", evaluated_at=AT - timedelta(minutes=1), due_at=AT)
            await store.try_save_rule_changes_and_return_token(RuleRecord("hot"), before, [])
        record = await store.load_rule_record("hot")
        server.faults.add(InjectedFault(FaultKind.STATUS, is_second_transaction, status=HTTPStatus.FORBIDDEN))
        with pytest.raises(WorkspaceError):
            await store.try_save_rule_changes_and_return_token(record, state, [_build_alert(n) for n in range(150)])
        stored = await store.load_rule_record("hot")
        assert 0 < len(stored.alerts) < 150
        assert stored.state is not None
        assert stored.state.due_at == AT
        assert (stored.state.firing, stored.state.has_marks) == (150, True)
        assert await store.list_rule_states() == [stored.state]
        assert await store.try_save_rule_changes_and_return_token(stored, state, stored.alerts) is not None
        assert (await store.load_rule_record("hot")).state == state
        await account.close()
