"""Source that reads messages from an MQTT broker (versions 3.1.1 and 5)."""

import asyncio
import logging
import time

from oi.gateway.sections import Section, SettingsError
from oi.gateway.sources import SourceContext
from oi.gateway.sources.mqtt_connection import BrokerError, MqttConnection, TakenOverError
from oi.gateway.sources.mqtt_marks import Redeliveries
from oi.gateway.sources.mqtt_settings import MqttSettings, parse_mqtt_settings

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0
_TAKEN_OVER_PAUSE_SECONDS = 30.0
_STABLE_SECONDS = 60.0
_SHORT_CONNECTIONS = 3
_LOG = logging.getLogger(__name__)


def create_source(section: Section, context: SourceContext) -> "MqttSource":
    """Create a source that reads an MQTT broker, from its section in the configuration file.

    Raises:
        SettingsError: a setting is invalid; the message names the first one.
    """
    return MqttSource(parse_mqtt_settings(section, is_check=context.is_check), context)


class MqttSource:
    """Reads the messages of an MQTT broker; reconnects after a lost network connection.

    Args:
        settings: settings of the broker, the session and the credentials.
        context: topic filters, receiver of the messages, marks of earlier deliveries, and metrics.
    """

    def __init__(self, settings: MqttSettings, context: SourceContext) -> None:
        self._settings = settings
        self._context = context
        self._pause = _FIRST_PAUSE_SECONDS
        self._short_connections = 0
        self._reported = ""

    async def run(self) -> None:
        """Read messages until the task is cancelled."""
        while True:
            opened_at = time.monotonic()
            try:
                await self._connect_and_read()
            except (BrokerError, SettingsError, OSError) as error:
                if self._context.is_check:
                    raise
                await self._log_error_and_pause(error, time.monotonic() - opened_at)

    async def _connect_and_read(self) -> None:
        context, settings = self._context, self._settings
        self._check_certificate_not_expired()
        # First store the deliveries of the last connection: the broker repeats those that were not acknowledged.
        redeliveries = Redeliveries(await context.marks.read_marks())
        connection = MqttConnection(settings, context)
        connection.set_redeliveries(redeliveries)
        try:
            if not await connection.open_and_check_for_stored_session():
                connection.set_redeliveries(Redeliveries())
                await context.marks.clear_marks()
            await self._subscribe(connection)
            self._report_connected()
            await connection.wait_until_closed()
        finally:
            context.metrics.set_gauge("source_connected", 0)
            connection.close()

    async def _subscribe(self, connection: MqttConnection) -> None:
        """Subscribe to the configured filters; then end the session's subscriptions that are no longer configured."""
        wanted = [self._settings.build_subscription_filter(each) for each in self._context.filters]
        store, client_id = self._context.subscriptions, self._settings.client_id
        if store is None:
            await connection.subscribe(wanted)
            return
        known = set(await store.read_filters(client_id))
        if not known.issuperset(wanted):
            # Stored first, because the gateway can stop before the broker confirms.
            await store.write_filters(client_id, sorted(known.union(wanted)))
        await connection.subscribe(wanted)
        # Ended last, so that no message is lost between both steps.
        superseded = sorted(known.difference(wanted))
        if superseded and await connection.try_unsubscribe(superseded):
            await store.write_filters(client_id, wanted)

    def _report_connected(self) -> None:
        _LOG.info("Connected to the broker %s as `%s`.", self._settings.broker_address, self._settings.client_id)
        self._reported = ""
        self._context.metrics.increase_counter("connections_total")
        self._context.metrics.set_gauge("source_connected", 1)

    async def _log_error_and_pause(self, error: Exception, connected_seconds: float) -> None:
        is_short = connected_seconds < _STABLE_SECONDS
        if not is_short:
            self._pause = _FIRST_PAUSE_SECONDS
        self._short_connections = self._short_connections + 1 if is_short and not self._reported else 0
        text = str(error)
        if self._short_connections >= _SHORT_CONNECTIONS:
            text += (
                " The broker has closed several connections soon after it accepted them; check that no other client "
                f"uses the client id `{self._settings.client_id}`."
            )
        if text != self._reported:
            _LOG.error("%s Trying again.", text)
        self._reported = text
        # Two clients with the same id would otherwise close each other's connections without a pause.
        await asyncio.sleep(_TAKEN_OVER_PAUSE_SECONDS if isinstance(error, TakenOverError) else self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def _check_certificate_not_expired(self) -> None:
        """Raise an error if the client certificate has expired.

        Brokers reject such a certificate without stating a reason.
        """
        expires_at = None if self._settings.tls is None else self._settings.tls.find_certificate_expiry_unix_seconds()
        if expires_at is None:
            return
        self._context.metrics.set_gauge("certificate_expires_timestamp_seconds", expires_at)
        if expires_at < time.time():
            tls = self._settings.tls
            day = time.strftime("%Y-%m-%d", time.gmtime(expires_at))
            raise SettingsError(f"The client certificate {tls and tls.certificate_file} expired on {day}; replace it.")
