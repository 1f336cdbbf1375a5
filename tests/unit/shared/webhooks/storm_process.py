"""Test process that evaluates a rule with changing values and sends the events to all endpoints.

Arguments: folder of the stores; number of devices; seconds between two changes of a value; ``storm`` or ``drain``.
A storm runs until the process is killed. A drain resolves all alerts, and ends when no delivery is waiting.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from shared.alerts.evaluation import RuleEvaluation
from shared.alerts.notifications import Notifications
from shared.alerts.ports import AlertFilter
from shared.alerts.rule_evaluator import RuleEvaluator
from shared.alerts.scheduler import AlertScheduler
from shared.backends.embedded.alerts import SCHEMA as ALERT_SCHEMA
from shared.backends.embedded.alerts import SqliteAlertStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.backends.embedded.webhooks import SCHEMA, SqliteWebhookStore
from shared.backends.outbound_http import CheckedHttp
from shared.catalog.snapshot import Catalog
from shared.outbound.addresses import AddressRules, parse_networks
from shared.warm_queries.results import QueryResult
from shared.webhooks import deliveries, sender, worker
from shared.webhooks.models import DeliveryStatus
from shared.webhooks.outbox import DeliveryOutbox
from shared.webhooks.registry import EndpointRegistry
from shared.webhooks.secrets import SecretVault
from shared.webhooks.sender import DeliverySender
from shared.webhooks.service import WebhookService
from shared.webhooks.worker import DeliveryWorker
from tests.unit.shared.alerts.fakes import ListAuditLog, build_catalog, build_entry, build_result, build_rule

ATTEMPTS = 10
SHORT_TIMES: tuple[tuple[Any, str, Any], ...] = (
    (worker, "LEASE", timedelta(seconds=2)),
    (sender, "SECONDS", 0.5),
    (deliveries, "RETRY_DELAYS", (timedelta(seconds=0.1),) * (ATTEMPTS - 1)),
)
"""Times of the service that are too long for a test: module, name and the value in the storm."""


class ChangingValues:
    """Fake query executor: the value of each device crosses the limit repeatedly.

    Args:
        devices: number of devices.
        period: seconds between two changes.
    """

    def __init__(self, devices: int, period: float) -> None:
        self.devices = devices
        self.period = period
        self.is_calm = False

    async def execute(self, *_: object, **__: object) -> QueryResult:
        """Return one row for each device."""
        step = int(time.time() / self.period)
        rows = [{"device": f"d-{number}", "value": self._find_value(step + number)} for number in range(self.devices)]
        return build_result(*rows, device="string")

    def _find_value(self, step: int) -> float:
        return 9.0 if step % 2 and not self.is_calm else 1.0


class AlertAndWebhookServices:
    """Alerts and webhooks over the SQLite files of a folder, with a real HTTP client.

    Args:
        folder: folder of the stores.
        values: executes the query of the rule.
    """

    def __init__(self, folder: Path, values: ChangingValues) -> None:
        self.database = SqliteDatabase(folder / "workspace.sqlite", SCHEMA + ALERT_SCHEMA)
        self.store, self.alerts = SqliteWebhookStore(self.database), SqliteAlertStore(self.database)
        self.registry = EndpointRegistry(self.store)
        self.http = CheckedHttp(AddressRules(parse_networks("127.0.0.0/8")))
        vault = SecretVault(self._load_key)
        self.worker = DeliveryWorker(self.store, self.registry, DeliverySender(self.http, vault, ""), self._is_audited)
        self.outbox = DeliveryOutbox(self.store, self.registry, self.worker.wake)
        log: Any = ListAuditLog()
        self.service = WebhookService(self.registry, vault, self.http, self.outbox, log, self._is_audited)
        rule = build_rule(groupBy=["device"]).model_copy(update={"every": "PT0.2S"})
        self._catalog = build_catalog(build_entry(rule))
        queries: Any = values
        states: Any = None
        notifications = Notifications(self.alerts, self.outbox, log)
        evaluator = RuleEvaluator(self._load_catalog, self.alerts, RuleEvaluation(queries, states), notifications)
        self.scheduler = AlertScheduler(self._load_catalog, self.alerts, evaluator)

    async def _load_key(self) -> bytes:
        return b"k" * 32

    async def _is_audited(self) -> bool:
        return False

    async def _load_catalog(self) -> Catalog:
        return self._catalog

    async def is_drained(self) -> bool:
        """Return whether no alert is active and no delivery waits."""
        if any(alert.is_active or alert.marks for alert in await self.alerts.list_alerts(AlertFilter(), None, 100_000)):
            return False
        endpoints = (await self.registry.load()).endpoints
        waiting = [await self.store.list_deliveries(each, DeliveryStatus.PENDING, None, 1) for each in endpoints]
        return not any(waiting)


@asynccontextmanager
async def open_services(folder: Path, devices: int = 0, period: float = 1.0) -> AsyncIterator[AlertAndWebhookServices]:
    """Open alerts and webhooks over the SQLite files in a folder."""
    webhook_services = AlertAndWebhookServices(folder, ChangingValues(devices, period))
    try:
        yield webhook_services
    finally:
        await webhook_services.worker.close()
        await webhook_services.http.close()
        await webhook_services.database.close()


async def main(folder: Path, devices: int, period: float, mode: str) -> None:
    """Evaluate the rule and send events until the process is killed or, with ``drain``, until no delivery waits."""
    for module, name, value in SHORT_TIMES:
        setattr(module, name, value)
    values = ChangingValues(devices, period)
    values.is_calm = mode == "drain"
    webhook_services = AlertAndWebhookServices(folder, values)
    print("ready", flush=True)  # noqa: T201  the test waits for it
    while True:
        await webhook_services.scheduler.evaluate_due_rules()
        webhook_services.worker.wake()
        await asyncio.sleep(0.05)
        if values.is_calm and await webhook_services.is_drained():
            print("drained", flush=True)  # noqa: T201  the test waits for it
            return


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
