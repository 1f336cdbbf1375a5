"""Runs the edge gateway: connects the source of messages, the spool file, the sender and the metrics."""

import asyncio
import logging
import sqlite3
from collections.abc import Sequence

from oi.gateway.clock import TOLERATED_SECONDS, ReceiveClock
from oi.gateway.intake import Intake
from oi.gateway.metrics import Metrics
from oi.gateway.metrics_server import HOST, start_metrics_server
from oi.gateway.sender import Sender, Upstream
from oi.gateway.settings import GatewaySettings
from oi.gateway.sources import SourceContext, create_source
from oi.gateway.spool import GatewaySpool
from oi.gateway.spool_thread import SpoolThread
from oi.gateway.uplink import Uplink

_CLOCK_CHECK_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


async def run_gateway(
    settings: GatewaySettings, *, metrics: Metrics | None = None, upstream: Upstream | None = None
) -> None:
    """Run the gateway until its task is cancelled.

    Before this function returns, it stores received messages on disk, unless the spool file or the disk is full.

    Args:
        settings: configuration of the gateway.
        metrics: counters and gauges to update; new ones if None.
        upstream: client that sends the batches of messages; if None, they are sent to the configured service.

    Raises:
        SettingsError: a setting of the source is invalid.
        SpoolInUseError: another gateway uses the spool file.
        OSError: the spool file cannot be opened, or the port of the metrics is in use.
    """
    metrics, clock = metrics or Metrics(), ReceiveClock()
    spool = SpoolThread(GatewaySpool(settings.spool))
    uplink = Uplink(settings.service, clock)
    try:
        intake = Intake(settings.routes, spool, clock, metrics)
        sender = Sender(upstream or uplink, spool, metrics)
        intake.call_after_each_store(sender.notify_new_messages)
        marks, subscriptions = _SpoolMarks(spool, intake), _SpoolSubscriptions(spool)
        context = SourceContext(settings.routes.filters, intake, marks, metrics, subscriptions)
        source = create_source(settings.source_kind, settings.source, context)
        _register_spool_gauges(metrics, spool.spool, settings.spool.max_bytes)
        server = await start_metrics_server(metrics, settings.metrics_port) if settings.metrics_port else None
        _log_gateway_start(settings, spool.spool)
        try:
            async with asyncio.TaskGroup() as group:
                for task in (intake.run(), sender.run(), source.run(), _report_clock_differences(clock, metrics)):
                    group.create_task(task)
        finally:
            if server is not None:
                server.close()
    finally:
        await uplink.close()
        spool.close()


class _SpoolMarks:
    """Implementation of the MarkStore port: stores marks, which identify deliveries, in the spool file."""

    def __init__(self, spool: SpoolThread, intake: Intake) -> None:
        self._spool = spool
        self._intake = intake

    async def read_marks(self) -> Sequence[bytes]:
        await self._intake.wait_until_stored()
        marks: list[bytes] = await self._spool.run(self._spool.spool.read_marks)
        return marks

    async def clear_marks(self) -> None:
        try:
            await self._spool.run(self._spool.spool.clear_marks)
        except sqlite3.Error as error:
            raise OSError(f"Marks of earlier deliveries cannot be deleted from the spool file: {error}.") from None

    @property
    def acknowledged_position(self) -> int:
        """Row id of the newest marks in the spool file whose deliveries have all been acknowledged."""
        return self._intake.acknowledged_mark_id

    def forget_marks_up_to(self, position: int) -> None:
        # If the disk is full, a later call deletes these marks, too.
        self._spool.submit(self._spool.spool.forget_marks_up_to, position)


class _SpoolSubscriptions:
    """Implementation of the SubscriptionStore port: stores subscriptions in the spool file."""

    def __init__(self, spool: SpoolThread) -> None:
        self._spool = spool

    async def read_filters(self, client_id: str) -> Sequence[str]:
        filters: list[str] = await self._spool.run(self._spool.spool.read_subscriptions, client_id)
        return filters

    async def write_filters(self, client_id: str, filters: Sequence[str]) -> None:
        try:
            await self._spool.run(self._spool.spool.write_subscriptions, client_id, filters)
        except sqlite3.Error as error:
            raise OSError(f"The subscriptions cannot be stored in the spool file: {error}.") from None


async def _report_clock_differences(clock: ReceiveClock, metrics: Metrics) -> None:
    """Measure the difference between local clock and service's clock; log an error each time it becomes large."""
    reported = False
    while True:
        await asyncio.sleep(_CLOCK_CHECK_SECONDS)
        difference = clock.get_clock_lead_seconds()
        metrics.set_gauge("clock_difference_seconds", difference)
        differs = abs(difference) > TOLERATED_SECONDS
        if differs and not reported:
            _LOG.error(
                "The clock of this machine differs from the service's clock by %.0f seconds. Messages without a time "
                "get the time of the service until the clock is set.",
                difference,
            )
        reported = differs


def _register_spool_gauges(metrics: Metrics, spool: GatewaySpool, max_bytes: int) -> None:
    metrics.set_gauge("spool_limit_bytes", max_bytes)
    metrics.set_gauge("spool_blocked", 0)
    metrics.set_gauge("source_connected", 0)
    metrics.set_gauge_function("waiting_messages", lambda: spool.waiting.messages)
    metrics.set_gauge_function("waiting_bytes", lambda: spool.waiting.bytes)
    metrics.set_gauge_function("rejected_bytes", lambda: spool.rejected_bytes)
    metrics.set_gauge_function("deleted_rejected_messages", lambda: spool.deleted_rejected_messages)


def _log_gateway_start(settings: GatewaySettings, spool: GatewaySpool) -> None:
    _LOG.info(
        "The gateway sends to %s; %s messages wait in %s.",
        settings.service.url,
        f"{spool.waiting.messages:,}",
        settings.spool.path,
    )
    if settings.metrics_port:
        _LOG.info("Metrics are at http://%s:%s/metrics.", HOST, settings.metrics_port)
