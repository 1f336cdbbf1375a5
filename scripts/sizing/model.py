"""Joins the formulas of the services into sizes, monthly quantities and exceeded limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from scripts.sizing import facts, limits
from scripts.sizing.load import Load
from scripts.sizing.services import (
    Archive,
    Background,
    CosmosDb,
    DataExplorer,
    EventHubs,
    LiveStream,
    ScalingGroup,
    size_archive,
    size_background,
    size_cosmos,
    size_data_explorer,
    size_event_hubs,
    size_functions,
    size_live_stream,
)

MB_PER_GB = 1_024
MILLION = 1_000_000
TEN_THOUSAND = 10_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of one deployment.

    Attributes:
        load: load of all deployments.
        event_hubs: the namespace.
        functions: scaling groups by name.
        background: the timer.
        cosmos: the account.
        data_explorer: the cluster.
        archive: the cold archive.
        live_stream: Web PubSub.
    """

    load: Load
    event_hubs: EventHubs
    functions: dict[str, ScalingGroup]
    background: Background
    cosmos: CosmosDb
    data_explorer: DataExplorer
    archive: Archive
    live_stream: LiveStream


def size(load: Load) -> Sizes:
    """Size one deployment for its part of a load."""
    hubs, background = size_event_hubs(load), size_background(load)
    return Sizes(
        load,
        hubs,
        size_functions(load, hubs, background),
        background,
        size_cosmos(load, hubs, background),
        size_data_explorer(load),
        size_archive(load, hubs, background),
        size_live_stream(load),
    )


def exceeded_limits(sizes: Sizes) -> list[limits.Limit]:
    """Return the limits of the design that the load exceeds."""
    compaction_seconds = facts.SECONDS_PER_MONTH / sizes.background.runs_per_month["compaction"]
    return [
        *limits.hub_limits(sizes.event_hubs),
        *limits.connection_limits(sizes.load),
        *limits.cosmos_limits(sizes.load, sizes.cosmos),
        *limits.store_limits(sizes.data_explorer, sizes.archive, compaction_seconds),
        *limits.live_limits(sizes.live_stream),
        *limits.instance_limits(sizes.load, sizes.functions),
    ]


def monthly_quantities(sizes: Sizes) -> dict[str, float]:
    """Return what a month of all deployments uses, by meter; meters without use are left out.

    Free grants are not subtracted, except the messages that each unit of Web PubSub includes.
    """
    each = (
        _of_functions(sizes)
        | _of_event_hubs(sizes.event_hubs)
        | _of_cosmos(sizes)
        | _of_data_explorer(sizes)
        | _of_archive(sizes.archive)
        | _of_live_stream(sizes.live_stream)
        | _of_key_vault(sizes)
    )
    quantities = {meter: quantity * sizes.load.deployments for meter, quantity in each.items()}
    quantities["log_analytics_gb"] = sizes.load.log_gb_per_day * facts.DAYS_PER_MONTH
    return {meter: quantity for meter, quantity in quantities.items() if quantity > 0}


def _of_functions(sizes: Sizes) -> dict[str, float]:
    """Divide billed seconds into those of instances that stand ready, which have a price of their own, and the rest."""
    ready = facts.ALWAYS_READY if sizes.load.production else {}
    gb_seconds = sizes.load.instance_memory_mb / MB_PER_GB * facts.SECONDS_PER_MONTH
    ready_billed = sum(
        min(group.billed_seconds_per_second, ready.get(name, 0)) for name, group in sizes.functions.items()
    )
    billed = sum(group.billed_seconds_per_second for group in sizes.functions.values())
    executions = sum(group.executions_per_second for group in sizes.functions.values())
    return {
        "functions_million_executions": executions * facts.SECONDS_PER_MONTH / MILLION,
        "functions_on_demand_gb_second": (billed - ready_billed) * gb_seconds,
        "functions_always_ready_gb_second": sum(ready[name] for name in sizes.functions if name in ready) * gb_seconds,
        "functions_always_ready_execution_gb_second": ready_billed * gb_seconds,
    }


def _of_event_hubs(hubs: EventHubs) -> dict[str, float]:
    # The Premium tier bills no events.
    if hubs.processing_units:
        return {"event_hubs_processing_unit_hour": float(hubs.processing_units * facts.HOURS_PER_MONTH)}
    return {
        "event_hubs_throughput_unit_hour": float(hubs.throughput_units * facts.HOURS_PER_MONTH),
        "event_hubs_million_events": hubs.billed_events_per_second * facts.SECONDS_PER_MONTH / MILLION,
    }


def _of_cosmos(sizes: Sizes) -> dict[str, float]:
    cosmos, regions = sizes.cosmos, sizes.load.regions
    stored = {"cosmos_gb_month": cosmos.stored_gb * regions}
    if not sizes.load.production:
        ru = cosmos.total_ru_per_second * facts.SECONDS_PER_MONTH * regions
        return stored | {"cosmos_serverless_million_ru": ru / MILLION}
    # Autoscale bills the highest RU/s of each hour, a tenth of the maximum at least.
    billed = max(cosmos.total_ru_per_second, facts.AUTOSCALE_LEAST_SHARE * cosmos.autoscale_max_ru_per_second)
    hours = ceil(billed / facts.BILLED_RU_PER_SECOND) * facts.HOURS_PER_MONTH * regions
    return stored | {"cosmos_autoscale_100_ru_hour": float(hours)}


def _of_data_explorer(sizes: Sizes) -> dict[str, float]:
    explorer = sizes.data_explorer
    hours = float(explorer.machines * facts.HOURS_PER_MONTH)
    # The cluster without a service level has no markup.
    markup = 0.0 if explorer.machine == "dev" else float(explorer.cores * facts.HOURS_PER_MONTH)
    return {
        f"data_explorer_{explorer.machine}_machine_hour": hours,
        "data_explorer_markup_core_hour": markup,
        "data_explorer_gb_month": explorer.stored_gb,
    }


def _of_archive(archive: Archive) -> dict[str, float]:
    return {
        "blob_hot_gb_month": archive.hot_gb,
        "blob_cool_gb_month": archive.gb - archive.hot_gb,
        "blob_10000_writes": archive.writes_per_second * facts.SECONDS_PER_MONTH / TEN_THOUSAND,
        "blob_10000_lists": archive.lists_per_month / TEN_THOUSAND,
    }


def _of_live_stream(live: LiveStream) -> dict[str, float]:
    return {
        "web_pubsub_unit_day": live.units * facts.DAYS_PER_MONTH,
        "web_pubsub_million_messages": live.billed_messages_per_month / MILLION,
    }


def _of_key_vault(sizes: Sizes) -> dict[str, float]:
    """Count the signatures of checkpoints: in each run, one for each chain that grew."""
    runs = sizes.background.runs_per_month["checkpoints"]
    grown = min(float(sizes.load.scopes_each), sizes.load.audit_each * facts.SECONDS_PER_MONTH / runs)
    return {"key_vault_10000_operations": runs * grown / TEN_THOUSAND}


def by_meter(quantities: Mapping[str, float], prices: Mapping[str, float]) -> dict[str, float]:
    """Return the monthly cost of each meter."""
    return {meter: quantity * prices[meter] for meter, quantity in quantities.items()}
