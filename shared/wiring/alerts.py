"""Services that evaluate alert rules, and that list and acknowledge alerts."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.queries import QueryServices
from shared.wiring.telemetry import TelemetryServices
from shared.wiring.webhooks import WebhookServices

if TYPE_CHECKING:
    from shared.alerts.evaluation import RuleEvaluation
    from shared.alerts.notifications import Notifications
    from shared.alerts.ports import AlertStore
    from shared.alerts.scheduler import AlertScheduler
    from shared.alerts.service import Alerts


class AlertServices:
    """Evaluates alert rules, lists and acknowledges alerts."""

    def __init__(
        self,
        backends: Backends,
        catalog: CatalogServices,
        provenance: ProvenanceServices,
        telemetry: TelemetryServices,
        queries: QueryServices,
        webhooks: WebhookServices,
    ) -> None:
        self._backends = backends
        self._catalog = catalog
        self._provenance = provenance
        self._telemetry = telemetry
        self._queries = queries
        self._webhooks = webhooks

    @cached_property
    def store(self) -> "AlertStore":
        """Store of alerts and of the states of alert rules."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_alerts import CosmosAlertStore

            return CosmosAlertStore(self._backends.cosmos)
        from shared.backends.embedded.alerts import SqliteAlertStore

        return SqliteAlertStore(self._backends.workspace_file)

    @cached_property
    def service(self) -> "Alerts":
        """Service that lists and acknowledges alerts, and evaluates rules on request."""
        from shared.alerts.service import Alerts

        return Alerts(
            self._catalog.get_current_catalog,
            self.store,
            self._rule_evaluation,
            self._notifications,
            self._catalog.is_workspace_audited,
            runtime=self._backends.runtime,
        )

    @cached_property
    def scheduler(self) -> "AlertScheduler":
        """Service that evaluates the alert rules that are due."""
        from shared.alerts.rule_evaluator import RuleEvaluator
        from shared.alerts.scheduler import AlertScheduler

        runtime = self._backends.runtime
        # Another instance can disable or delete a rule while its query runs; a cached catalog would not show this. If
        # the catalog cannot be read, nothing is stored, and the scheduler evaluates the rule again.
        newest = self._catalog.reader.load_stored_catalog
        evaluator = RuleEvaluator(newest, self.store, self._rule_evaluation, self._notifications, runtime=runtime)
        return AlertScheduler(self._catalog.get_current_catalog, self.store, evaluator, runtime=runtime)

    @cached_property
    def _rule_evaluation(self) -> "RuleEvaluation":
        from shared.alerts.evaluation import RuleEvaluation

        return RuleEvaluation(self._queries.service, self._telemetry.connection_states, runtime=self._backends.runtime)

    @cached_property
    def _notifications(self) -> "Notifications":
        from shared.alerts.notifications import Notifications

        return Notifications(
            self.store,
            self._webhooks.outbox,
            self._provenance.audit_log,
            runtime=self._backends.runtime,
        )
