"""Report of the sizing model, as text and as JSON: sizes, quantities, costs and exceeded limits."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scripts.sizing.limits import ExceededLimit
from scripts.sizing.model import Sizes
from scripts.sizing.prices import METERS

WIDTH = 118


@dataclass(frozen=True, slots=True)
class Costs:
    """Monthly costs of a deployment by meter (billed quantity).

    Attributes:
        currency: currency of all amounts.
        by_meter: monthly cost of each meter.
    """

    currency: str
    by_meter: Mapping[str, float]


def build_json_report(
    sizes: Sizes, quantities: Mapping[str, float], limits: list[ExceededLimit], costs: Costs | None
) -> dict[str, Any]:
    """Build a JSON object from the results of the sizing model; its property ``costs`` is null without prices."""
    total = None if costs is None else {**asdict(costs), "total": sum(costs.by_meter.values())}
    # The names of the nested properties contain the units.
    return {
        "sizes": asdict(sizes),
        "quantities": dict(quantities),
        "limits": [asdict(each) for each in limits],
        "costs": total,
    }


def build_text_report(
    sizes: Sizes, quantities: Mapping[str, float], limits: list[ExceededLimit], costs: Costs | None
) -> str:
    """Build a report in plain text from the results of the sizing model."""
    parts = [f"Sizes of one deployment (deployments: {sizes.load.deployments})", *_format_sizes(sizes), ""]
    parts += ["Quantities of a month, all deployments", *_format_quantities(quantities, costs), ""]
    if costs is None:
        parts += ["No prices given: see samples/prices.example.yaml", ""]
    else:
        parts += [f"Cost of a month: {sum(costs.by_meter.values()):,.2f} {costs.currency}", ""]
    if not limits:
        return "\n".join([*parts, "No limit of the design is exceeded."])
    parts.append("Exceeded limits")
    for limit in limits:
        parts += [_wrap_lines(f"{limit.name}: {limit.problem}", "  "), _wrap_lines(limit.remedy, "    ")]
    return "\n".join(parts)


def _wrap_lines(text: str, indent: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False)


def _format_sizes(sizes: Sizes) -> Iterator[str]:
    hubs, cosmos, explorer, archive = sizes.event_hubs, sizes.cosmos, sizes.data_explorer, sizes.archive
    units = f"throughput units {hubs.throughput_units}"
    if hubs.processing_units:
        units = f"Premium processing units {hubs.processing_units}"
    yield f"  Event Hubs     {units}, partitions of each hub {hubs.partitions}"
    yield (
        f"                 in {hubs.events_in_per_second:,.0f} events/s, {hubs.mb_in_per_second:,.3f} MB/s; "
        f"out {hubs.events_out_per_second:,.0f} events/s, {hubs.mb_out_per_second:,.3f} MB/s"
    )
    groups = ", ".join(f"{name} {group.instances}" for name, group in sizes.functions.items())
    yield f"  Functions      instances: {groups}"
    runs = _format_background_run_count(sizes)
    yield f"  Timer          every {sizes.background.tick_seconds:.0f} s, {runs} job runs a month"
    throughput = cosmos.autoscale_max_ru_per_second
    mode = f"autoscale up to {throughput:,} RU/s" if throughput else "serverless"
    mean = f"mean {cosmos.total_ru_per_second:,.0f} RU/s"
    yield f"  Cosmos DB      {mode}; {mean}; {cosmos.ru_per_append:.1f} RU an append"
    yield (
        f"                 a chain after {sizes.load.audit_days:,} days: at most {cosmos.verify_ru:,.0f} RU to verify; "
        f"all chains {cosmos.stored_gb:,.1f} GB"
    )
    yield (
        f"  Data Explorer  {explorer.machines} x {explorer.machine}; {explorer.gb_per_hour:,.2f} GB/h in, "
        f"{explorer.hot_gb:,.0f} GB in the cache, {explorer.stored_gb:,.0f} GB stored"
    )
    yield (
        f"  Archive        {archive.gb:,.0f} GB, {archive.blobs:,.0f} blobs after {sizes.load.archive_days:,} days; "
        f"at most {archive.writes_per_second:,.0f} blobs/s written"
    )
    live = sizes.live_stream
    yield (
        f"  Web PubSub     units {live.units}; {live.messages_in_per_second:,.0f} messages/s published, "
        f"{live.messages_out_per_second:,.0f} delivered"
    )


def _format_background_run_count(sizes: Sizes) -> str:
    return f"{sum(sizes.background.runs_per_month.values()):,.0f}"


def _format_quantities(quantities: Mapping[str, float], costs: Costs | None) -> Iterator[str]:
    for meter, quantity in quantities.items():
        amount = "" if costs is None else f"{costs.by_meter[meter]:>16,.2f} {costs.currency}"
        yield f"  {meter:44}{quantity:>18,.2f}{amount}  ({METERS[meter].unit})"
