"""Times at which alert rules are due for evaluation."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Final

from shared.alerts.models import RuleState
from shared.catalog.alert_rule_models import AlertRule, RuleKind

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def build_data_source_key(rule: AlertRule) -> str:
    """Return a key for the data that an alert rule reads.

    Rules with the same query, parameters and time range have the same key.
    """
    if rule.kind is RuleKind.ABSENCE:
        return "connections"
    return json.dumps([rule.query, rule.parameters, rule.time_range], sort_keys=True)


def compute_next_due_time(rule: AlertRule, at: datetime) -> datetime:
    """Return the first time after ``at`` at which an alert rule is due.

    Rules with the same data and interval are due at the same time, so that the data is read once. All other rules are
    due at different times, so that the load is spread evenly.
    """
    interval = rule.interval
    digest = hashlib.sha256(build_data_source_key(rule).encode()).digest()
    offset = interval * (int.from_bytes(digest[:4]) / 2**32)
    passed = (at - _EPOCH - offset) // interval
    due: datetime = _EPOCH + offset + (passed + 1) * interval
    return due


def is_due(rule: AlertRule, current_revision: str, state: RuleState | None, at: datetime) -> bool:
    """Return whether an alert rule must be evaluated now.

    A new or changed rule is due immediately. A rule is also due if its stored due time is later than one interval from
    now: the clock was set back.

    Args:
        rule: alert rule, which defines the interval of its evaluations.
        current_revision: current revision of the rule; see :func:`shared.alerts.rule_results.build_rule_revision`.
        state: stored state of the rule; None before the first evaluation.
        at: the current time.
    """
    if state is None or state.revision != current_revision:
        return True
    return state.due_at <= at or state.due_at > at + rule.interval + timedelta(seconds=1)
