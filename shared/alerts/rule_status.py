"""Status of an alert rule for callers, from its definition and its stored state."""

from dataclasses import dataclass
from datetime import datetime

from shared.alerts.models import RuleState, RuleStatus
from shared.alerts.rule_results import build_revision
from shared.catalog.alert_rule_models import AlertRule
from shared.catalog.snapshot import CatalogEntry


@dataclass(frozen=True, slots=True)
class RuleStatusReport:
    """Result of a rule's newest evaluation.

    Attributes:
        status: state of the rule.
        error: reason why the newest evaluation failed; else None.
        evaluated_at: time of the newest evaluation; None before the first one.
        due_at: time of the next evaluation; None for a disabled rule.
    """

    status: RuleStatus
    error: str | None
    evaluated_at: datetime | None
    due_at: datetime | None


def report_status(entry: CatalogEntry[AlertRule], state: RuleState | None) -> RuleStatusReport:
    """Derive the status of an alert rule, for callers.

    Args:
        entry: alert rule with its creation time.
        state: stored state of the rule; None before the first evaluation.
    """
    if state is None or not state.revision.startswith(build_revision(entry).partition("/")[0]):
        return RuleStatusReport(RuleStatus.OK, None, None, entry.updated_at if entry.value.enabled else None)
    if not entry.value.enabled:
        return RuleStatusReport(RuleStatus.OK, None, state.evaluated_at, None)
    # A changed rule is evaluated at once.
    due_at = state.due_at if state.revision == build_revision(entry) else entry.updated_at
    return RuleStatusReport(state.status, state.error, state.evaluated_at, due_at)
