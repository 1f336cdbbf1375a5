"""Metrics of the service, recorded with OpenTelemetry if metrics are enabled."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from shared.observability.exporters import Attribute, Signal, get_meter, is_signal_enabled


@dataclass(frozen=True, slots=True)
class Instrument:
    """Definition of a metric.

    Attributes:
        kind: `counter` for a number that only increases, `level` for a number that also decreases, `histogram` for the
            distribution of single values, such as durations.
        unit: unit in the Unified Code for Units of Measure (UCUM), such as ``s``, or a counted item
            in braces, such as ``{record}``.
        description: sentence that explains the metric to operators.
    """

    kind: Literal["counter", "histogram", "level"]
    unit: str
    description: str


INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    "workspace.chain.appends": Instrument("counter", "{record}", "Records appended to audit chains."),
    "workspace.chain.batch_size": Instrument("histogram", "{record}", "Records in one commit."),
    "workspace.chain.conflicts": Instrument("counter", "{batch}", "Batches repeated after another instance's append."),
    "workspace.chain.verify.duration": Instrument("histogram", "s", "Duration of a verification."),
    "workspace.query.duration": Instrument("histogram", "s", "Duration of a query, as seen by its caller."),
    "workspace.ingest.events": Instrument("counter", "{event}", "Hub events that were converted to impulses."),
    "workspace.ingest.lag": Instrument(
        "histogram", "s", "Age of the oldest event of a batch when it was converted or archived."
    ),
    "workspace.telemetry.type_mismatches": Instrument(
        "counter", "{event}", "Hub events with a value that contradicts a declared type of a signal."
    ),
    "workspace.live.published": Instrument("counter", "{message}", "Impulses published to the live stream."),
    "workspace.live.admitted": Instrument("counter", "{client}", "Live-stream clients that were admitted."),
    "workspace.live.clients": Instrument("level", "{client}", "Live-stream clients of the local host."),
    "workspace.chain.broken": Instrument("counter", "{verification}", "Verifications that found a broken audit chain."),
    "workspace.chain.verified": Instrument("counter", "{chain}", "Audit chains that were verified in the background."),
    "workspace.chain.verify.failures": Instrument(
        "counter", "{chain}", "Audit chains whose verification in the background ended without a result."
    ),
    "workspace.checkpoint.failures": Instrument("counter", "{checkpoint}", "Checkpoints that could not be created."),
    "workspace.http.errors": Instrument("counter", "{reply}", "Replies with status 429 or 5xx."),
    "workspace.alerts.evaluations": Instrument("counter", "{evaluation}", "Evaluations of alert rules."),
    "workspace.alerts.failures": Instrument(
        "counter", "{failure}", "Evaluations or notifications of alerts that the stores prevented."
    ),
    "workspace.background.runs": Instrument("counter", "{run}", "Runs of background jobs that ended without an error."),
    "workspace.background.failures": Instrument("counter", "{run}", "Runs of background jobs that failed."),
    "workspace.imports.rows": Instrument("counter", "{row}", "Rows of imports that were read."),
    "workspace.downloads.parts": Instrument("counter", "{part}", "Parts of cold downloads that were converted."),
    "workspace.overload.refusals": Instrument("counter", "{request}", "Requests rejected by an overloaded instance."),
    "workspace.live.quota_refusals": Instrument("counter", "{client}", "Live streams rejected because of a quota."),
    "workspace.downloads.quota_refusals": Instrument(
        "counter", "{download}", "Downloads rejected or failed because of a quota."
    ),
    "workspace.disk.refusals": Instrument("counter", "{request}", "Requests rejected because the disk is nearly full."),
    "workspace.oauth.refusals": Instrument("counter", "{request}", "Requests of OAuth clients that were refused."),
    "workspace.webhooks.attempts": Instrument("counter", "{attempt}", "Attempts to send a webhook delivery."),
    "workspace.webhooks.dead_letters": Instrument("counter", "{delivery}", "Webhook deliveries that failed for good."),
    "workspace.webhooks.source_failures": Instrument("counter", "{run}", "Runs that could not publish webhook events."),
    "workspace.rate_limit.refusals": Instrument("counter", "{request}", "Requests rejected because of a rate limit."),
}


def count(name: str, amount: int = 1, **attributes: Attribute) -> None:
    """Add an amount to a counter metric.

    Args:
        name: name of the metric in :data:`INSTRUMENTS`.
        amount: amount to add.
        attributes: names and values by which operators can filter the metric.
    """
    if is_signal_enabled(Signal.METRICS):
        _get_instrument(name).add(amount, attributes)


def add_to_level_metric(name: str, amount: int, **attributes: Attribute) -> None:
    """Change a level metric by an amount, which can be negative; see :func:`count` for the name and the attributes."""
    if is_signal_enabled(Signal.METRICS):
        _get_instrument(name).add(amount, attributes)


def record_histogram_value(name: str, value: float, **attributes: Attribute) -> None:
    """Add a value to a histogram metric; see :func:`count` for the name and the attributes."""
    if is_signal_enabled(Signal.METRICS):
        _get_instrument(name).record(value, attributes)


@cache
def _get_instrument(name: str) -> Any:
    instrument, meter = INSTRUMENTS[name], get_meter()
    arguments = (name, instrument.unit, instrument.description)
    match instrument.kind:
        case "counter":
            return meter.create_counter(*arguments)
        case "histogram":
            return meter.create_histogram(*arguments)
        case "level":
            return meter.create_up_down_counter(*arguments)
