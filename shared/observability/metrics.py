"""Metrics of the service, recorded with OpenTelemetry if metrics are enabled."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from shared.observability.exporters import Attribute, Signal, get_meter, is_enabled


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric.

    Attributes:
        kind: `counter` only increases, `level` increases and decreases, `histogram` collects values.
        unit: in the Unified Code for Units of Measure (UCUM).
        description: one sentence for operators.
    """

    kind: Literal["counter", "histogram", "level"]
    unit: str
    description: str


INSTRUMENTS: Final[Mapping[str, Instrument]] = {
    "workspace.chain.appends": Instrument("counter", "{record}", "Records appended to audit chains."),
    "workspace.chain.batch_size": Instrument("histogram", "{record}", "Records in one commit."),
    "workspace.chain.conflicts": Instrument("counter", "{batch}", "Batches that lost against another instance."),
    "workspace.chain.verify.duration": Instrument("histogram", "s", "Duration of a verification."),
    "workspace.query.duration": Instrument("histogram", "s", "Duration of a query, as seen by its caller."),
    "workspace.ingest.events": Instrument("counter", "{event}", "Hub events that were converted to impulses."),
    "workspace.ingest.lag": Instrument("histogram", "s", "Age of the oldest event of a batch when it was received."),
    "workspace.live.published": Instrument("counter", "{message}", "Impulses published to the live stream."),
    "workspace.live.admitted": Instrument("counter", "{client}", "Live-stream clients that were admitted."),
    "workspace.live.clients": Instrument("level", "{client}", "Live-stream clients of the local host."),
    "workspace.chain.broken": Instrument("counter", "{verification}", "Verifications that found a broken audit chain."),
    "workspace.checkpoint.failures": Instrument("counter", "{checkpoint}", "Checkpoints that could not be created."),
    "workspace.http.errors": Instrument("counter", "{reply}", "Replies with status 429 or 5xx."),
    "workspace.background.failures": Instrument("counter", "{run}", "Runs of background jobs that failed."),
    "workspace.downloads.parts": Instrument("counter", "{part}", "Parts of cold downloads that were converted."),
    "workspace.overload.refusals": Instrument("counter", "{request}", "Requests rejected by an overloaded instance."),
    "workspace.live.quota_refusals": Instrument("counter", "{client}", "Live streams rejected because of a quota."),
    "workspace.downloads.quota_refusals": Instrument(
        "counter", "{download}", "Downloads rejected or failed because of a quota."
    ),
    "workspace.rate_limit.refusals": Instrument("counter", "{request}", "Requests rejected because of a rate limit."),
}


def count(name: str, amount: int = 1, **attributes: Attribute) -> None:
    """Add to a counter.

    Args:
        name: one of ``INSTRUMENTS``.
        amount: number to add; not negative.
        attributes: attributes with few distinct values; never names of people or equipment.
    """
    if is_enabled(Signal.METRICS):
        _get_instrument(name).add(amount, attributes)


def change(name: str, amount: int, **attributes: Attribute) -> None:
    """Change a level by an amount, which may be negative; the other arguments are as for ``count``."""
    if is_enabled(Signal.METRICS):
        _get_instrument(name).add(amount, attributes)


def measure(name: str, value: float, **attributes: Attribute) -> None:
    """Add a value to a histogram; arguments as for ``count``."""
    if is_enabled(Signal.METRICS):
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
